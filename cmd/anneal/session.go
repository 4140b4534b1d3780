package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"sync/atomic"
	"syscall"

	"anneal/comm"
	"anneal/config"
	"anneal/internal/machine"
	"anneal/run"
)

// session holds what every command needs: where to print, and when to stop.
type session struct {
	stdin  io.Reader
	stdout *results
	stderr io.Writer // a *console, except in tests
	json   bool
	quiet  bool // leave out remarks
	piped  bool // a file is written to standard output
	status *status

	run   atomic.Value  // string: the directory of the one run that the command trains, for reports of crashes
	begun atomic.Bool   // whether that run has begun to train
	gone  atomic.Value  // func() error: the gone of Options.Begun
	saves chan struct{} // requests of saveSignal; nil if no run receives them

	trained string // the run that has ended and gets a report; "" for none

	world  comm.Comm       // the ranks of the run; comm.Alone except in commands that train
	joined bool            // the command knows that a launcher may have started several ranks
	energy *machine.Energy // since training began; nil if this machine cannot measure it
	told   io.Writer       // where a silenced rank writes its own errors; else nil
}

// out returns where results for people go: standard output, unless that is reserved for JSON or a file.
func (s *session) out() io.Writer {
	if s.json || s.piped {
		return s.stderr
	}
	return s.stdout
}

// printf writes results for people.
func (s *session) printf(format string, args ...any) {
	s.status.clear()
	s.settle()
	fmt.Fprintf(s.out(), format, args...)
}

// notef writes a remark, such as a stage of the work, to standard error, unless --quiet is set.
func (s *session) notef(format string, args ...any) {
	if !s.quiet {
		s.sayf(format, args...)
	}
}

// sayf writes a warning or an error to standard error.
func (s *session) sayf(format string, args ...any) {
	s.status.clear()
	io.WriteString(s.stderr, wrap(fmt.Sprintf(format+"\n", args...), columns(s.stderr), "    "))
}

// emit writes the one JSON object of --json.
func (s *session) emit(v any) error {
	if !s.json {
		return nil
	}
	s.status.clear()
	s.settle()
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

// message returns the text of an error for people. If the process has too many files open, it replaces the error's
// advice.
func message(err error) string {
	text := strings.TrimRight(err.Error(), "\n")
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		text, _, _ = strings.Cut(text, "\n")
		text += "\n  the limit of open files is too low: raise it, as with `ulimit -n 65536`, and give the " +
			"command again"
	}
	return text
}

// fail tells the user what went wrong, once, and returns the exit code.
func (s *session) fail(err error) int {
	code := exitCode(err)
	var saved *stopped // all ranks have stopped: they wait for each other, as launchers kill late ones
	if !errors.As(err, &saved) && !run.Agreed(err) {
		run.Abort(s.world, err, exitCode) // the other ranks may be waiting for this one
	}
	if !s.speaks(err, code) {
		return code
	}
	if s.told != nil {
		s.stderr = s.told
	}
	if s.piped && errors.Is(err, syscall.EPIPE) {
		return exitPipe // as for results that are text
	}
	var conf *config.Error
	switch {
	case saved != nil:
		s.sayf("%s", saved.message)
		return code
	case errors.As(err, &conf):
		for _, p := range conf.Problems {
			s.sayf("error: %s", p.Error())
		}
	default:
		s.sayf("error: %s", message(err))
	}
	result := map[string]any{}
	if part := new(incomplete); errors.As(err, &part) {
		maps.Copy(result, part.result)
	}
	result["error"], result["exit_code"] = message(err), code
	if emitErr := s.emit(result); emitErr != nil && !errors.Is(err, emitErr) {
		s.sayf("error: %s", emitErr)
	}
	return code
}
