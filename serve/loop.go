package serve

import (
	"sync"

	"anneal/use"
)

// A loop is the goroutine that owns the model. Others hand it sequences and take them back.
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

func newLoop(s *use.Scheduler, m *metrics) *loop {
	l := &loop{scheduler: s, metrics: m, broken: make(chan error, 1), ended: make(chan struct{})}
	l.wake = sync.NewCond(&l.mu)
	go l.run()
	return l
}

// add appends sequences to those that wait. The error is that of the model's device, if that has failed.
func (l *loop) add(list []*use.Sequence) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, list...)
	l.wake.Signal()
	return l.err
}

// drop takes back sequences that nobody waits for any more, whether they are complete or not.
func (l *loop) drop(list []*use.Sequence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped = append(l.dropped, list...)
	l.wake.Signal()
}

// counts returns how many sequences are being continued and wait.
func (l *loop) counts() (running, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running, len(l.waiting)
}

// close ends the loop after the current pass.
func (l *loop) close() {
	l.mu.Lock()
	l.closed = true
	l.wake.Signal()
	l.mu.Unlock()
	<-l.ended
	l.scheduler.Close()
}

func (l *loop) run() {
	defer close(l.ended)
	for l.admit() {
		did, err := l.scheduler.Step()
		if err != nil {
			l.mu.Lock()
			l.err = err
			l.mu.Unlock()
			l.broken <- err
			return
		}
		l.metrics.pass(did)
	}
}

// admit waits until there is something to do, and brings the scheduler up to date. It returns false at the end.
func (l *loop) admit() bool {
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
				l.scheduler.Add(q)
			default:
				left = append(left, q)
			}
		}
		clear(l.waiting[len(left):])
		l.waiting = left
		l.running = l.scheduler.Running()
		if l.closed || l.running > 0 {
			return !l.closed
		}
		l.wake.Wait()
	}
}
