package relay

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// gate is a writer that blocks until it is opened, and fails while err is set.
type gate struct {
	mu     sync.Mutex
	open   chan struct{}
	err    error
	most   int // bytes of a write that it accepts before it fails
	buffer bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	if g.open != nil {
		<-g.open
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		n, _ := g.buffer.Write(p[:min(len(p), g.most)])
		return n, g.err
	}
	return g.buffer.Write(p)
}

func (g *gate) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

func (g *gate) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buffer.String()
}

// While a reader stalls, writes return at once and the newest pieces wait; when it reads again, it learns how much it
// missed.
func TestAStalledWriterLosesTheOldestPieces(t *testing.T) {
	g, lost := &gate{open: make(chan struct{})}, 0
	r := New(g, Options{
		Pieces: 3, Lost: func(p []byte) { lost += len(p) },
		Recovered: func(err error) []byte { return fmt.Appendf(nil, "[%d lost, %v]", lost, err) },
	})
	start := time.Now()
	for i := range 10 {
		r.Write([]byte{byte('0' + i)})
		if i == 0 { // the writer has it
			for ; r.waiting() > 0; time.Sleep(time.Millisecond) {
			}
		}
	}
	if r.Flush(10*time.Millisecond) || r.Close(10*time.Millisecond) {
		t.Error("a writer that stalls is said to have everything")
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("the writer held the writes up for %v", d)
	}
	close(g.open)
	if !r.Close(time.Minute) || g.text() != "0[6 lost, <nil>]789" {
		t.Errorf("the reader got %q", g.text())
	}
}

// Without Retry a failing piece is dropped; the next one is tried.
func TestAFailingWriterIsToldOfOnce(t *testing.T) {
	gone := errors.New("gone")
	g, failures, lost := &gate{err: gone}, 0, 0
	r := New(g, Options{
		Pieces: 100, Failed: func(error) { failures++ }, Lost: func([]byte) { lost++ },
		Recovered: func(err error) []byte { return []byte(err.Error() + " ") },
	})
	for range 5 {
		r.Write([]byte("x"))
		for ; !r.idle(); time.Sleep(time.Millisecond) {
		}
	}
	g.fail(nil)
	r.Write([]byte("y"))
	if !r.Close(time.Minute) || failures != 1 || lost != 5 || g.text() != "ygone " {
		t.Errorf("%d failures told, %d lost, the reader got %q", failures, lost, g.text())
	}
}

func (r *Relay) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue)
}

func (r *Relay) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue) == 0 && r.since.IsZero()
}

// With Retry no piece is lost while the writer fails, not even one that was written in part, and Close tries once
// more.
func TestRetriedPiecesArriveWhole(t *testing.T) {
	var want strings.Builder
	g := &gate{err: errors.New("full"), most: 2}
	r := New(g, Options{Pieces: 100, Retry: time.Millisecond})
	for i := range 50 {
		fmt.Fprintf(&want, "line %d\n", i)
		fmt.Fprintf(r, "line %d\n", i)
		if i%10 == 9 {
			time.Sleep(2 * time.Millisecond)
		}
	}
	if r.Flush(0) {
		t.Error("a failing writer is said to have everything")
	}
	g.fail(nil)
	if !r.Close(time.Minute) || g.text() != want.String() {
		t.Errorf("the file holds %q", g.text())
	}

	g, lost := &gate{err: errors.New("full")}, 0
	r = New(g, Options{Pieces: 100, Retry: time.Hour, Lost: func([]byte) { lost++ }})
	r.Write([]byte("a"))
	r.Write([]byte("b"))
	if !r.Close(time.Minute) || lost != 2 {
		t.Errorf("%d of 2 pieces are lost at the end", lost)
	}
}
