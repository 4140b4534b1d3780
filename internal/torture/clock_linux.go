package torture

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock returns a clock of the CPU time of a process; after its end the clock returns the largest time.
func cpuClock(pid int) func() time.Duration {
	id := int32(^pid<<3 | 2) // as clock_getcpuclockid makes it
	var now unix.Timespec
	if unix.ClockGettime(id, &now) != nil {
		return wallClock()
	}
	return func() time.Duration {
		if unix.ClockGettime(id, &now) != nil {
			return math.MaxInt64
		}
		return time.Duration(now.Nano())
	}
}
