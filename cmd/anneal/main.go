// Command anneal pre-trains language models: raw text to a trained model that other tools open.
//
// This package parses the command line, calls the packages that do the work, and prints. Each command is a file;
// cli.go lists them. args.go and session.go hold what they share; console.go, signals.go and crash.go deal with stalled
// readers, signals and crashes; exit.go has the exit codes. Results go to standard output, messages for people to
// standard error.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	abortOnCrash()
	signal.Ignore(syscall.SIGPIPE) // closing standard error must not end a run; results.Write ends other commands
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
