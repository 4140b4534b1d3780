//go:build unix

package main

import (
	"os"
	"runtime/debug"
	"syscall"
)

// saveSignal asks a run to save a checkpoint and continue.
var saveSignal os.Signal = syscall.SIGUSR1

// abortOnCrash makes a crash that main cannot recover, such as a panic in another goroutine, end the process by
// SIGABRT (134 in a shell) and not with the exit code of a wrong command line. It leaves no core file, which would be
// as large as the model, unless GOTRACEBACK=crash asks for one.
func abortOnCrash() {
	var core syscall.Rlimit
	if os.Getenv("GOTRACEBACK") != "crash" && syscall.Getrlimit(syscall.RLIMIT_CORE, &core) == nil {
		core.Cur = 0
		syscall.Setrlimit(syscall.RLIMIT_CORE, &core)
	}
	debug.SetTraceback("crash")
}
