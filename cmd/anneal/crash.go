package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"anneal/run"
)

// defect is the error for a panic, which only a mistake in anneal can cause.
type defect struct {
	panicked any
	stacks   string          // or the name of the file that holds them
	rank     *run.PanicError // if one of several ranks panicked; else nil
	remedy   string          // how to continue the run of that rank
}

func (d *defect) Error() string {
	text := fmt.Sprintf("this is a defect in anneal: %v\n", d.panicked)
	if d.rank != nil {
		text += "  " + d.remedy + "\n"
	}
	return text + "  please report it with the stacks: " + d.stacks
}

// Unwrap returns the panic of a rank.
func (d *defect) Unwrap() error {
	if d.rank == nil {
		return nil
	}
	return d.rank
}

// guarded calls f and turns a panic, also one of a rank, into an error. The stacks go into the run's directory.
func (s *session) guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &defect{p, s.report("panic", fmt.Appendf(nil, "panic: %v\n\n%s", p, debug.Stack())), nil, ""}
		}
	}()
	err = f()
	if p := (*run.PanicError)(nil); errors.As(err, &p) {
		dir, _ := s.run.Load().(string)
		return &defect{p, s.report("panic", fmt.Appendf(nil, "%v\n\n%s", p, p.Stack)), p, run.Remedy(dir)}
	}
	return err
}

// report writes stacks into the run's directory and returns the name of the file; without a run it returns the
// stacks.
func (s *session) report(what string, stacks []byte) string {
	if path, ok := s.writeCrash(what, stacks); ok {
		return path
	}
	return "\n" + string(stacks)
}

// writeCrash writes stacks into the run's directory, if the command has a run.
func (s *session) writeCrash(what string, stacks []byte) (path string, ok bool) {
	dir, ok := s.run.Load().(string)
	if !ok {
		return "", false
	}
	path, err := run.WriteCrash(dir, what, stacks)
	return path, err == nil
}

// quitOnSignal answers SIGQUIT, from Ctrl-\ or a supervisor that lost patience, with the stacks of all goroutines,
// on standard error and in the run's directory, and ends the process. Go would do so with the exit code of a wrong
// command line.
func (s *session) quitOnSignal() (stop func()) {
	quit, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(quit, syscall.SIGQUIT)
	go func() {
		select {
		case <-done:
			return
		case <-quit:
		}
		stacks := allStacks()
		s.status.clear()
		fmt.Fprintf(s.stderr, "SIGQUIT: the stacks of all goroutines\n\n%s\n", stacks)
		if path, ok := s.writeCrash("quit", stacks); ok {
			s.notef("they are in %s, too", path)
		}
		s.settle()
		os.Exit(exitQuit)
	}()
	return func() {
		signal.Stop(quit)
		close(done)
	}
}

// allStacks returns the stacks of all goroutines.
func allStacks() []byte {
	text := make([]byte, 64<<10)
	for {
		n := runtime.Stack(text, true)
		if n < len(text) || len(text) >= 64<<20 {
			return text[:n]
		}
		text = make([]byte, 2*len(text))
	}
}
