package filetest

import (
	"runtime"
	"testing"
)

// Allocated returns how many bytes f and all other goroutines allocate while f runs.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// AllocsPerRun is the least of five results of testing.AllocsPerRun, which counts the allocations of the whole
// process. The least excludes the allocations of goroutines that earlier tests have left running.
func AllocsPerRun(runs int, f func()) float64 {
	least := testing.AllocsPerRun(runs, f)
	for try := 1; try < 5 && least > 0; try++ {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}
