//go:build mpi && linux

package mpi

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Libraries install signal handlers of their own, some without a stack of their own (SA_ONSTACK): the first such
// signal then ends a Go process, and a nil dereference is a crash instead of a panic. So the handlers from before the
// library was loaded are put back.

const signalCount = 64

// action is the kernel's struct sigaction: handler, flags, restorer and mask.
type action [4]uint64

type actions [signalCount + 1]action

// readActions returns the actions of all signals.
func readActions() *actions {
	all := new(actions)
	for sig := 1; sig <= signalCount; sig++ {
		sigaction(sig, nil, &all[sig])
	}
	return all
}

// restore puts back the actions that have changed since, and returns the names of their signals.
func (before *actions) restore() (changed []string) {
	after := readActions()
	for sig := 1; sig <= signalCount; sig++ {
		if before[sig] != after[sig] && sigaction(sig, &before[sig], nil) {
			changed = append(changed, signalName(sig))
		}
	}
	return changed
}

func signalName(sig int) string {
	if name := unix.SignalName(syscall.Signal(sig)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", sig)
}

func sigaction(sig int, set, old *action) bool {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), unsafe.Sizeof(action{}[0]), 0, 0)
	return errno == 0
}
