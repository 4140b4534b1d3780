package run

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"anneal/internal/relay"
	"anneal/train"
)

// metricsFile appends lines to metrics.jsonl from its own goroutine, so that a disk that stalls or fails does not
// delay the run. Lines that could not be written are retried every second. The newest metricsLines of them are kept,
// and a warning names the steps whose lines are lost.
type metricsFile struct {
	w     io.WriteCloser
	relay *relay.Relay
	warn  func(string)

	mu   sync.Mutex
	lost stepRange // steps whose lines were lost since the last warning; empty if its first is 0
}

type stepRange struct{ first, last int }

const (
	metricsLines = 10_000
	metricsRetry = time.Second
)

// newMetricsFile returns a metricsFile that appends to w.
func newMetricsFile(w io.WriteCloser, retry time.Duration, warn func(string)) *metricsFile {
	m := &metricsFile{w: w, warn: warn}
	m.relay = relay.New(w, relay.Options{
		Pieces: metricsLines, Retry: retry, Failed: m.failed, Lost: m.lose, Recovered: m.recovered,
	})
	return m
}

// write takes the line of a step.
func (m *metricsFile) write(e train.Event) {
	line, err := json.Marshal(e)
	if err != nil {
		m.warn(fmt.Sprintf("the metrics of step %d cannot be recorded: %v", e.Step, err))
		return
	}
	m.relay.Write(append(line, '\n'))
}

// flush waits until all lines are written, unless the disk stalls for longer than patience or fails.
func (m *metricsFile) flush(patience time.Duration) {
	if m != nil {
		m.relay.Flush(patience)
	}
}

// close writes the remaining lines, and warns of steps whose lines cannot be written.
func (m *metricsFile) close() {
	if m == nil {
		return
	}
	if m.relay.Close(sinkPatience) {
		m.w.Close()
	} else {
		m.warn("the last metrics could not be written: the disk does not answer")
	}
	m.tellLost()
}

func (m *metricsFile) failed(err error) {
	m.warn(fmt.Sprintf("metrics cannot be recorded at present: %v\n"+
		"  training continues; the newest %d lines are kept until they can be written", err, metricsLines))
}

func (m *metricsFile) lose(line []byte) {
	l, err := readLoggedStep(line)
	if err != nil {
		return // it was written by json.Marshal
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost.first == 0 {
		m.lost.first = l.Step
	}
	m.lost.last = l.Step
}

func (m *metricsFile) recovered(err error) []byte {
	if err != nil {
		m.warn("metrics are recorded again")
	}
	m.tellLost()
	return nil
}

func (m *metricsFile) tellLost() {
	m.mu.Lock()
	lost := m.lost
	m.lost = stepRange{}
	m.mu.Unlock()
	if lost.first > 0 {
		m.warn("the metrics of " + lost.String() + " are lost")
	}
}

// String names the steps: "step 3", "steps 3 to 7".
func (r stepRange) String() string {
	if r.first == r.last {
		return fmt.Sprintf("step %d", r.first)
	}
	return fmt.Sprintf("steps %d to %d", r.first, r.last)
}

// appendFile appends to a file. After an error it opens the file again, because a file system that was unavailable may
// have invalidated the open file.
type appendFile struct {
	path string
	f    *os.File // nil after an error
}

// openAppend opens a file for appending, and makes it if it does not exist.
func openAppend(path string) (*appendFile, error) {
	a := &appendFile{path: path}
	return a, a.open()
}

func (a *appendFile) open() (err error) {
	a.f, err = os.OpenFile(a.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	return err
}

// Write implements io.Writer. It opens the file again if an earlier write has failed.
func (a *appendFile) Write(p []byte) (n int, err error) {
	if a.f == nil {
		if err := a.open(); err != nil {
			return 0, err
		}
	}
	if n, err = a.f.Write(p); err != nil {
		a.Close()
	}
	return n, err
}

// Close implements io.Closer.
func (a *appendFile) Close() error {
	if a.f == nil {
		return nil
	}
	err := a.f.Close()
	a.f = nil
	return err
}
