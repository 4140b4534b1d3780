package pool

import "syscall"

// yield offers this CPU to other threads of the machine.
func yield() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
