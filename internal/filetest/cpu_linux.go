package filetest

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns the CPU time of the thread, which excludes the time of other processes.
func threadTime() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_THREAD, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
