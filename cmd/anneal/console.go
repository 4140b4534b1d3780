package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"anneal/internal/relay"
	"anneal/internal/units"
)

const (
	consolePieces   = 1000             // lines, or rewritten status lines, that wait for the reader of standard error
	consolePatience = time.Second      // how long the reader may take for a line before results no longer wait for it
	resultsPatience = 30 * time.Second // how long the reader of a training command's results may take
)

// console is standard error. A write never waits or fails: if the reader stalls or has closed, lines of progress are
// dropped and counted.
type console struct {
	*relay.Relay
	w io.Writer

	mu    sync.Mutex
	lines int      // dropped since the reader last took one
	notes []string // for the run's journal, because they cannot be printed here
}

func newConsole(w io.Writer) *console {
	c := &console{w: w}
	c.Relay = relay.New(w, relay.Options{Pieces: consolePieces, Failed: c.failed, Lost: c.lost, Recovered: c.recovered})
	return c
}

func (c *console) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, fmt.Sprintf("standard error cannot be written: %v", err))
}

func (c *console) lost(piece []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines += bytes.Count(piece, []byte("\n"))
}

func (c *console) recovered(err error) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, why := c.lines, "the reader is slow"
	if c.lines = 0; n == 0 {
		return nil // only versions of the status line were dropped
	}
	if err != nil {
		why = err.Error()
	}
	text := fmt.Sprintf("%s of progress were dropped: %s", units.Count(n, "line"), why)
	c.notes = append(c.notes, text)
	return []byte(text + "\n")
}

// takeNotes returns the notes since the last call about lines that standard error dropped.
func (c *console) takeNotes() (notes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	notes, c.notes = c.notes, nil
	return notes
}

// notes returns the notes about dropped output for the run's journal.
func (s *session) notes() []string {
	if c, ok := s.stderr.(*console); ok {
		return c.takeNotes()
	}
	return nil
}

// settle makes messages for people appear before results, unless their reader stalls.
func (s *session) settle() {
	if c, ok := s.stderr.(*console); ok {
		c.Flush(consolePatience)
	}
}

// results is standard output. It keeps its first error, so a caller that prints need not check; the end of the command
// does.
type results struct {
	w   io.Writer
	err error
	// the command does more than print, so a reader that has closed or stalls must not end it
	outlasts bool
}

// errStalled means that the reader of the results stalls.
var errStalled = errors.New("nothing was read for " + seconds(resultsPatience))

// Write ends the process if the reader has closed, as SIGPIPE would, unless outlasts is set.
func (r *results) Write(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.pass(p)
	if errors.Is(err, syscall.EPIPE) && !r.outlasts {
		os.Exit(exitPipe)
	}
	if err != nil {
		r.err = fmt.Errorf("cannot write the results: %w", err)
	}
	return n, r.err
}

// pass writes p. If outlasts is set, it gives up on a reader that stalls.
func (r *results) pass(p []byte) (int, error) {
	if !r.outlasts {
		return r.w.Write(p)
	}
	type outcome struct {
		n   int
		err error
	}
	done := make(chan outcome, 1)
	go func(p []byte) {
		n, err := r.w.Write(p)
		done <- outcome{n, err}
	}(slices.Clone(p))
	select {
	case o := <-done:
		return o.n, o.err
	case <-time.After(resultsPatience):
		return 0, errStalled
	}
}
