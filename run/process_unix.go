//go:build unix

package run

import "syscall"

// runs reports whether a process of this host runs, or has ended and was not yet reaped.
func runs(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) != syscall.ESRCH }
