package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"anneal/internal/machine"
	"anneal/run"
)

// untilSignal does work under a context that SIGINT, SIGTERM and SIGHUP cancel. After a second SIGINT or SIGTERM the
// process ends at once, even if something is stuck. If work returns because of the signal, the error is an
// *interrupted.
func (s *session) untilSignal(work func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals, done := make(chan os.Signal, 8), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup a closing terminal is no reason to stop
		signal.Notify(signals, syscall.SIGHUP)
	}
	if s.saves != nil && saveSignal != nil {
		signal.Notify(signals, saveSignal)
	}
	defer func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}()
	go func() {
		asked := 0 // counts SIGINT and SIGTERM; a closing terminal may send SIGHUP several times
		for {
			select {
			case <-done:
				return
			case sig := <-signals:
				if sig == saveSignal && s.world.Size() == 1 { // it stops several ranks: launchers preempt with it
					s.requestSave()
					continue
				}
				if sig == syscall.SIGTERM {
					s.endIfRankGone()
				}
				if sig != syscall.SIGHUP {
					asked++
				}
				if asked > 1 {
					os.Exit((&interrupted{sig}).code())
				}
				if ctx.Err() == nil {
					cancel(&interrupted{sig})
					s.notef("stopping; a second signal stops at once")
				}
			}
		}
	}()
	err := work(ctx)
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// endIfRankGone ends this process, one of several ranks, if another one on this host has ended: a launcher that sees a
// rank die sends SIGTERM to the others, and SIGKILL soon after. Nothing more can be saved, but the reason can be
// reported.
func (s *session) endIfRankGone() {
	gone, ok := s.gone.Load().(func() error)
	if !ok || s.world.Size() == 1 {
		return
	}
	err := gone()
	if err == nil {
		return
	}
	if code := exitCode(err); s.leave(err, code) {
		if s.told != nil {
			s.stderr = s.told
		}
		s.sayf("error: %s", message(err))
		s.settle()
	}
	os.Exit(exitStalled)
}

// requestSave asks the run to save after the current step.
func (s *session) requestSave() {
	select {
	case s.saves <- struct{}{}:
		s.notef("a checkpoint is saved after this step")
	default: // a request is already pending
	}
}

// whileTraining is untilSignal for commands that train. Their output is more than the printed results, so a reader of
// standard output that stalls or closes does not end them. Only a command that has joined other ranks may be one of
// several processes.
func (s *session) whileTraining(work func(ctx context.Context) error) error {
	if !s.joined {
		if err := s.refuseLauncher(); err != nil {
			return err
		}
	}
	s.stdout.outlasts = true
	s.energy = machine.MeasureEnergy(powercap)
	defer s.energy.Stop()
	err := s.untilSignal(work)
	if away := (*run.DivergedError)(nil); errors.As(err, &away) {
		s.trained = away.Dir
	}
	return err
}

// interrupted is the cause of a context that a signal cancelled.
type interrupted struct{ signal os.Signal }

func (i *interrupted) Error() string { return "stopped by signal: " + i.signal.String() }

func (i *interrupted) code() int {
	switch i.signal {
	case syscall.SIGHUP:
		return exitHangup
	case syscall.SIGTERM:
		return exitTerminate
	}
	return exitInterrupt
}
