package serve

import (
	"cmp"
	"errors"
	"sync"

	"anneal/use"
)

// A loop is the goroutine that owns the model. Other goroutines pass it sequences and take them back.
type loop struct {
	scheduler *use.Scheduler
	metrics   *metrics
	broken    chan error // receives the error that ended it, if one did
	ended     chan struct{}

	mu      sync.Mutex
	wake    *sync.Cond
	waiting []*use.Sequence
	dropped []*use.Sequence
	running int
	closed  bool
	err     error
}

// errClosed means that the server was closed.
var errClosed = errors.New("the server is closed")

func newLoop(s *use.Scheduler, m *metrics) *loop {
	l := &loop{scheduler: s, metrics: m, broken: make(chan error, 1), ended: make(chan struct{})}
	l.wake = sync.NewCond(&l.mu)
	go l.run()
	return l
}

// add appends sequences to those that wait. It returns an error if the loop has ended or is to end.
func (l *loop) add(list []*use.Sequence) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.err != nil {
		return cmp.Or(l.err, errClosed)
	}
	l.waiting = append(l.waiting, list...)
	l.wake.Signal()
	return nil
}

// failed reports whether the model's device has failed.
func (l *loop) failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err != nil
}

// failure returns why the loop has ended: the error of the model's device, or errClosed.
func (l *loop) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.err, errClosed)
}

// drop removes sequences that no request waits for any more, whether they are complete or not.
func (l *loop) drop(list []*use.Sequence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.err != nil {
		return // nobody looks any more
	}
	l.dropped = append(l.dropped, list...)
	l.wake.Signal()
}

// counts returns how many sequences are being continued, and how many wait.
func (l *loop) counts() (running, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running, len(l.waiting)
}

// end ends the loop after the current pass. Requests that wait for it are answered with an error.
func (l *loop) end() {
	l.mu.Lock()
	l.closed = true
	l.wake.Signal()
	l.mu.Unlock()
	<-l.ended
}

// close ends the loop and frees its memory.
func (l *loop) close() {
	l.end()
	l.scheduler.Close()
}

func (l *loop) run() {
	defer close(l.ended)
	for {
		more, err := l.admit()
		var did use.Pass
		if more {
			did, err = l.scheduler.Step()
		}
		if err != nil {
			l.mu.Lock()
			l.err = err
			l.mu.Unlock()
			l.broken <- err
			return
		}
		if !more {
			return
		}
		l.metrics.pass(did)
	}
}

// admit waits until there is work, and updates the scheduler. It returns false when the loop is closed.
func (l *loop) admit() (more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		gone := map[*use.Sequence]bool{}
		for _, q := range l.dropped {
			l.scheduler.Drop(q)
			gone[q] = true
		}
		l.dropped = l.dropped[:0]
		left := l.waiting[:0]
		for _, q := range l.waiting {
			switch {
			case gone[q]:
			case l.scheduler.Free() > 0:
				if err := l.scheduler.Add(q); err != nil { // of the model: requests are checked
					return false, err
				}
			default:
				left = append(left, q)
			}
		}
		clear(l.waiting[len(left):])
		l.waiting = left
		l.running = l.scheduler.Running()
		if l.closed || l.running > 0 {
			return !l.closed, nil
		}
		l.wake.Wait()
	}
}
