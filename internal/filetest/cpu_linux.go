package filetest

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the time that the thread has computed: unlike time on a clock, it does not count what other processes take.
func threadTime() time.Duration {
	var u unix.Rusage
	unix.Getrusage(unix.RUSAGE_THREAD, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
