package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"anneal/train/config"
)

// results is standard output. Its first error stays: who printed something need not look, the end of the command does.
type results struct {
	w   io.Writer
	err error
}

func (r *results) Write(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.w.Write(p)
	if err != nil {
		r.err = fmt.Errorf("cannot write the results: %w", err)
	}
	return n, r.err
}

// session is what every command needs: where to print, and when to stop.
type session struct {
	stdin  io.Reader
	stdout *results
	stderr io.Writer
	json   bool
	piped  bool // a file is written to standard output
	status *status
}

// out is where results for people go: standard output, unless that is kept for JSON or a file.
func (s *session) out() io.Writer {
	if s.json || s.piped {
		return s.stderr
	}
	return s.stdout
}

// printf writes results for people.
func (s *session) printf(format string, args ...any) {
	s.status.clear()
	fmt.Fprintf(s.out(), format, args...)
}

// notef writes a remark, such as a warning or a stage, beside the results.
func (s *session) notef(format string, args ...any) {
	s.status.clear()
	io.WriteString(s.stderr, wrap(fmt.Sprintf(format+"\n", args...), columns(s.stderr), "    "))
}

// emit writes the one JSON object of --json.
func (s *session) emit(v any) error {
	if !s.json {
		return nil
	}
	s.status.clear()
	e := json.NewEncoder(s.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// number is a float64 whose NaN and infinities are null in JSON.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// fail tells the user what went wrong, once, and returns the exit code.
func (s *session) fail(err error) int {
	code := exitCode(err)
	var saved *stopped
	var conf *config.Error
	switch {
	case errors.As(err, &saved):
		s.notef("%s", saved.message)
		return code
	case errors.As(err, &conf):
		for _, p := range conf.Problems {
			s.notef("error: %s", p.Error())
		}
	default:
		s.notef("error: %s", strings.TrimRight(err.Error(), "\n"))
	}
	result := map[string]any{}
	if part := new(incomplete); errors.As(err, &part) {
		maps.Copy(result, part.result)
	}
	result["error"], result["exit_code"] = err.Error(), code
	if emitErr := s.emit(result); emitErr != nil && !errors.Is(err, emitErr) {
		s.notef("error: %s", emitErr)
	}
	return code
}

// untilSignal does work under a context that SIGINT, SIGTERM and SIGHUP cancel; a second signal ends the process at once. Work
// that gave up because of the signal returns an *interrupted.
func (s *session) untilSignal(work func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup a terminal that goes away is no reason to stop
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}()
	go func() {
		sig, ok := <-signals
		if !ok {
			return
		}
		s.notef("stopping; once more to stop at once")
		cancel(&interrupted{sig})
		if sig, ok = <-signals; ok {
			os.Exit((&interrupted{sig}).code())
		}
	}()
	err := work(ctx)
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
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
