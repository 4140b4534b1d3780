package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"anneal/internal/units"
)

const (
	terminalEvery = 100 * time.Millisecond
	plainEvery    = 10 * time.Second
)

// status is the one line that shows a command's progress. On a terminal the line is rewritten in place; elsewhere (a
// file, a pipe, a job's log, a dumb terminal) it is a plain line every ten seconds.
type status struct {
	mu       sync.Mutex
	w        io.Writer
	shown    bool
	quiet    bool // nothing is shown
	last     time.Time
	now      func() time.Time
	terminal func() int // columns, 0 if there is none
}

func newStatus(w io.Writer) *status {
	s := &status{w: w, now: time.Now, terminal: func() int { return 0 }}
	if f := screen(w); f != nil && os.Getenv("TERM") != "dumb" {
		s.terminal = func() int { return columns(f) }
	}
	s.last = s.now()
	return s
}

// rewrites reports whether there is a terminal, on which the line is rewritten.
func (s *status) rewrites() bool { return s.terminal() > 0 }

// update shows the result of line, which receives the width in columns (0 without a terminal). It calls line only when
// an update is due.
func (s *status) update(line func(columns int) string) {
	if s.quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	width, every := s.terminal(), plainEvery
	if width > 0 {
		every = terminalEvery
	}
	now := s.now()
	if now.Sub(s.last) < every {
		return
	}
	s.last = now
	s.write(line(width), width)
}

// keep shows a line that stays, even if no update is due.
func (s *status) keep(line string) {
	if s.quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintln(s.w, line)
	s.last = s.now()
}

// clear erases the rewritten line before other output.
func (s *status) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
}

func (s *status) erase() {
	if s.shown {
		io.WriteString(s.w, "\r\x1b[K")
		s.shown = false
	}
}

func (s *status) write(line string, width int) {
	if width == 0 {
		fmt.Fprintln(s.w, line)
		return
	}
	if r := []rune(line); len(r) >= width {
		line = string(r[:width-1])
	}
	io.WriteString(s.w, "\r"+line+"\x1b[K")
	s.shown = true
}

// bytesProgress returns a function that shows how much of the input is read, with rate and time left.
func (s *status) bytesProgress(what string, total int64) func(done int64) {
	show := s.progress(what, units.FormatSize, func(rate float64) string { return fmt.Sprintf("%.1f MB/s", rate/1e6) })
	return func(done int64) { show(done, total) }
}

// tokensProgress is bytesProgress for tokens.
func (s *status) tokensProgress(what string) func(done, total int64) {
	return s.progress(what, units.Commas, func(rate float64) string { return units.Commas(int64(rate)) + " tok/s" })
}

// progress returns a function that shows how much is done of a total, with rate and time left.
func (s *status) progress(what string, amount func(int64) string,
	speed func(perSecond float64) string) func(done, total int64) {
	start := s.now()
	return func(done, total int64) {
		s.update(func(int) string {
			elapsed := s.now().Sub(start)
			line := fmt.Sprintf("%s  %s of %s", what, amount(done), amount(total))
			if total > 0 {
				line += fmt.Sprintf("  %2d%%", min(100, 100*done/total))
			}
			if elapsed >= time.Second && done > 0 { // earlier rates mean nothing
				rate := float64(done) / elapsed.Seconds()
				line += "  " + speed(rate)
				if total > done {
					line += "  ETA " + clock(time.Duration(float64(total-done)/rate*1e9))
				}
			}
			return line
		})
	}
}

// memorySize writes a size of memory.
func memorySize(n int64) string { return units.FormatBytes(n) }

// clock writes a duration as 2m03s.
func clock(d time.Duration) string {
	d = d.Round(time.Second)
	h, m, sec := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h >= 48:
		return fmt.Sprintf("%dd%02dh", h/24, h%24)
	case h > 0:
		return fmt.Sprintf("%dh%02dm", h, m)
	case m > 0:
		return fmt.Sprintf("%dm%02ds", m, sec)
	}
	return fmt.Sprintf("%ds", sec)
}
