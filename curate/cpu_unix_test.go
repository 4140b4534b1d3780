//go:build unix

package curate

import (
	"syscall"
	"time"
)

// cpuTime is what the process has used of all cores: on a machine that does other things too, a better clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
