// Package relay keeps slow output from delaying its producer. A Relay takes pieces of output without waiting and
// writes them from a goroutine of its own. If the writer is too slow or fails, it drops pieces, the oldest first, and
// reports the loss. It imports no other package of this module.
package relay

import (
	"io"
	"slices"
	"sync"
	"time"
)

// Options of a Relay. The functions are called one at a time and must not call the Relay.
type Options struct {
	Pieces int           // at most this many wait; beyond it the oldest is dropped
	Retry  time.Duration // a piece that could not be written is tried again this often; 0 drops it

	Failed func(error)        // the writer begins to fail; may be nil
	Lost   func(piece []byte) // a piece was dropped, or only its beginning written; may be nil
	// The writer works again after a loss or after failing with err, which is nil if it was only slow. The result is
	// written. May be nil.
	Recovered func(err error) []byte
}

// A Relay passes pieces of output on to a writer. Its methods can be called from several goroutines.
type Relay struct {
	w       io.Writer
	o       Options
	more    chan struct{} // signals a new piece
	closing chan struct{}
	ended   chan struct{}

	mu      sync.Mutex
	queue   [][]byte  // oldest first
	since   time.Time // when the current write began, or the last one if it failed; zero between pieces
	failing bool      // the last write failed
	err     error     // the last error since the last recovery
	lost    bool      // since the last recovery
	closed  bool
}

// New returns a Relay to w. The caller closes it.
func New(w io.Writer, o Options) *Relay {
	r := &Relay{w: w, o: o, more: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{})}
	go r.run()
	return r
}

// Write queues a piece and returns at once; it never fails. After Close it drops the piece.
func (r *Relay) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.drop(p)
		return len(p), nil
	}
	if len(r.queue) >= r.o.Pieces {
		r.drop(r.queue[0])
		r.queue = slices.Delete(r.queue, 0, 1)
	}
	r.queue = append(r.queue, slices.Clone(p))
	select {
	case r.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

// drop counts a piece as lost. The caller holds the lock.
func (r *Relay) drop(p []byte) {
	r.lost = true
	if r.o.Lost != nil {
		r.o.Lost(p)
	}
}

// Flush waits until all pieces are written and reports whether they are. It gives up once the writer fails, or has
// had the same piece for longer than patience.
func (r *Relay) Flush(patience time.Duration) bool {
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		r.mu.Lock()
		empty := len(r.queue) == 0 && r.since.IsZero()
		stuck := r.failing || !r.since.IsZero() && time.Since(r.since) > patience
		r.mu.Unlock()
		if empty || stuck {
			return empty
		}
		time.Sleep(wait)
	}
}

// Close writes the waiting pieces, as far as the writer accepts them; it tries failing pieces once more. It gives up
// on a writer that takes longer than patience for one piece. It reports whether the writer is no longer in use.
func (r *Relay) Close(patience time.Duration) bool {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.closing)
	}
	r.mu.Unlock()
	for {
		select {
		case <-r.ended:
			return true
		case <-time.After(5 * time.Millisecond):
		}
		r.mu.Lock()
		stuck := !r.since.IsZero() && time.Since(r.since) > patience
		r.mu.Unlock()
		if stuck {
			return false
		}
	}
}

func (r *Relay) run() {
	defer close(r.ended)
	for {
		p, ok := r.next()
		if !ok {
			return
		}
		r.deliver(p)
		r.mu.Lock()
		r.since = time.Time{}
		r.mu.Unlock()
	}
}

// next waits for the oldest piece; it returns false once the relay is closed and empty.
func (r *Relay) next() ([]byte, bool) {
	for {
		r.mu.Lock()
		if len(r.queue) > 0 {
			p := r.queue[0]
			r.queue, r.since = slices.Delete(r.queue, 0, 1), time.Now()
			r.mu.Unlock()
			return p, true
		}
		closed := r.closed
		r.mu.Unlock()
		if closed {
			return nil, false
		}
		select {
		case <-r.more:
		case <-r.closing:
		}
	}
}

// deliver writes a piece, or drops it if it cannot be written.
func (r *Relay) deliver(piece []byte) {
	for p := piece; ; {
		r.mu.Lock()
		r.since = time.Now()
		r.mu.Unlock()
		n, err := r.w.Write(p)
		p = p[min(n, len(p)):]
		if err == nil {
			r.recover()
			return
		}
		if last := r.fail(err); last {
			r.mu.Lock()
			r.drop(piece)
			r.mu.Unlock()
			return
		}
		select {
		case <-time.After(r.o.Retry):
		case <-r.closing:
		}
	}
}

// fail records an error of the writer and reports whether to give up on the piece.
func (r *Relay) fail(err error) bool {
	r.mu.Lock()
	first := !r.failing
	again := r.o.Retry > 0 && !(r.closed && !first)
	r.failing, r.err = true, err
	r.mu.Unlock()
	if first && r.o.Failed != nil {
		r.o.Failed(err)
	}
	return !again
}

// recover reports a loss once the writer works again.
func (r *Relay) recover() {
	r.mu.Lock()
	over, err := r.lost || r.failing, r.err
	r.lost, r.failing, r.err = false, false, nil
	r.mu.Unlock()
	if !over || r.o.Recovered == nil {
		return
	}
	if note := r.o.Recovered(err); len(note) > 0 {
		r.w.Write(note)
	}
}
