//go:build mpi && linux

package mpi

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"anneal/comm"
)

// batch is a list of messages that are in flight together. Its lists are allocated once.
type batch struct {
	messages []message
	n        int            // how many of the messages, from the first, this time
	requests unsafe.Pointer // n of the library's MPI_Request
	memory   []uint64       // of requests
	statuses []uint64       // n of the library's MPI_Status
	indices  []int32        // of completed ones
	arrived  []atomic.Bool  // messages that are complete
	left     int            // messages that are not
	done     chan struct{}  // receives a value when none is left
	alarm    *time.Timer
}

func newBatch(messages []message) *batch {
	n := len(messages)
	b := &batch{
		messages: messages, n: n, left: n, memory: make([]uint64, n+1), statuses: make([]uint64, (n+1)*maxStatus/8),
		indices: make([]int32, n+1), arrived: make([]atomic.Bool, n), done: make(chan struct{}, 1),
		alarm: time.NewTimer(time.Hour),
	}
	b.alarm.Stop()
	b.requests = unsafe.Pointer(&b.memory[0])
	return b
}

// missing returns the peer of the first incomplete message, or -1.
func (b *batch) missing() int {
	for i := range b.n {
		if !b.arrived[i].Load() {
			return b.messages[i].peer
		}
	}
	return -1
}

// thread makes all calls of the library. Other goroutines send it batches.
type thread struct {
	*library
	world   *world
	batches chan *batch
	quit    chan chan error // closes the library, or leaves it as it is if the groups have ended

	active []*batch
	count  int32  // result of a test
	ending *batch // receives the reason why another rank ended all groups
	reason []byte // of ending
	idle   int    // tests in a row that found nothing
}

// run is the loop of the thread. It blocks while no batch is in flight.
func (t *thread) run() {
	for {
		if len(t.active) == 0 {
			select {
			case b := <-t.batches:
				t.start(b)
			case <-t.world.down:
				t.tell()
			case reply := <-t.quit:
				t.close(reply)
				return
			}
		}
		select {
		case b := <-t.batches:
			t.start(b)
			continue
		case <-t.world.down:
			t.tell()
			continue
		default:
		}
		t.progress()
	}
}

// start posts the messages of a batch.
func (t *thread) start(b *batch) {
	t.idle = 0
	b.left = b.n
	for i := range b.n {
		b.arrived[i].Store(false)
		if err := t.post(&b.messages[i], unsafe.Add(b.requests, i*t.request)); err != nil {
			t.world.fail(b.messages[i].peer, err)
			return
		}
	}
	if b.left == 0 {
		b.done <- struct{}{}
		return
	}
	t.active = append(t.active, b)
}

// progress tests all batches in flight once, and sleeps if nothing has arrived for a while.
func (t *thread) progress() {
	found := 0
	for i := 0; i < len(t.active); i++ {
		b := t.active[i]
		n, err := t.advance(b)
		if err != nil {
			t.world.fail(b.missing(), err)
			return
		}
		if found += n; b.left == 0 {
			t.active = append(t.active[:i], t.active[i+1:]...)
			b.done <- struct{}{}
			i--
		}
	}
	if n, err := t.advance(t.ending); n > 0 && err == nil {
		t.world.ended(t.reason)
		return
	}
	if t.idle++; found > 0 {
		t.idle = 0
	}
	t.rest()
}

// advance tests the messages of a batch.
func (t *thread) advance(b *batch) (int, error) {
	statuses := unsafe.Pointer(&b.statuses[0])
	n, err := t.test(b.requests, statuses, b.n, &t.count, &b.indices[0])
	for k, i := range b.indices[:n] {
		if m := &b.messages[i]; m.full && err == nil {
			err = t.measure(m, unsafe.Add(statuses, k*t.status))
		}
		b.arrived[i].Store(true)
	}
	b.left -= n
	return n, err
}

// measure checks that a message is as long as the room for it. The library itself refuses one that is longer.
func (t *thread) measure(m *message, status unsafe.Pointer) error {
	size, err := t.received(status, &t.count)
	if err == nil && size != m.size {
		err = &comm.MismatchError{
			Rank: t.world.info.Rank, Other: m.peer, Mine: fmt.Sprintf("has room for a message of %d bytes", m.size),
			Theirs: fmt.Sprintf("sends %d", size),
		}
	}
	return err
}

// Tests that find nothing are repeated at once for a while, then with pauses: a message is found soon, and goroutines
// that compute keep the processor.
const (
	eager      = 16
	patient    = 256
	shortPause = 20 * time.Microsecond
	longPause  = 50 * time.Microsecond
)

// rest pauses in the kernel: Go's own timers are too coarse for this.
func (t *thread) rest() {
	switch {
	case t.idle < eager:
	case t.idle < patient:
		pause(shortPause)
	default:
		pause(longPause)
	}
}

func pause(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	unix.Nanosleep(&ts, nil)
}

// punctual makes the pauses of this thread exact; by default the kernel adds 50 µs.
func punctual() { unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0) }

// grace is how long a rank tries to tell the others why it ends all groups.
const grace = 500 * time.Millisecond

// tell tells the other ranks why this rank has ended all groups. From then on the thread only waits to be closed,
// because the memory of messages in flight may have been freed.
func (t *thread) tell() {
	t.active = t.active[:0]
	if b := t.world.farewell(); b != nil {
		for i := range b.n {
			if t.post(&b.messages[i], unsafe.Add(b.requests, i*t.request)) != nil {
				break
			}
		}
		for end := time.Now().Add(grace); b.left > 0 && time.Now().Before(end); pause(longPause) {
			if _, err := t.advance(b); err != nil {
				break
			}
		}
	}
	close(t.world.told)
	reply := <-t.quit
	reply <- nil
	select {} // the thread belongs to the library
}

// close finalises the library, once all ranks have called it. Some libraries tell the launcher only when they are
// unloaded that this process ended normally, and Go's exit does not run the exit handlers of C.
func (t *thread) close(reply chan error) {
	self := newBatch([]message{{send: true, peer: t.world.info.Rank, tag: tagEnd, data: unsafe.Pointer(&t.reason[0])}})
	err := t.post(&self.messages[0], self.requests) // completes the receive of a reason
	for err == nil && self.left+t.ending.left > 0 {
		for _, b := range []*batch{self, t.ending} {
			if b.left > 0 && err == nil {
				_, err = t.advance(b)
			}
		}
	}
	if err == nil {
		err = t.fault("MPI_Finalize", t.finalize.Call())
	}
	if err != nil {
		err = fmt.Errorf("the MPI library could not be closed: %w", err)
	} else {
		t.lib.Close()
	}
	reply <- err
}
