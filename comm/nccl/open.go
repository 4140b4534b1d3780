//go:build cuda && linux

package nccl

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"anneal/comm"
	"anneal/tensor"
)

// open creates NCCL's communicator when the first transfer is prepared. It waits for all ranks.
func (g *group) open() (err error) {
	if g.side != nil {
		return nil
	}
	if g.side, err = g.card.NewSide(); err != nil {
		return err
	}
	if g.watch, err = newWatch(g); err != nil { // which hears of a lost rank while this one waits
		return err
	}
	const some = 64 // bytes
	if g.first, err = g.card.NewArena("the connections of ranks "+g.names(), 2*some*g.Size()); err != nil {
		return err
	}
	out, room := make([][]tensor.Tensor, g.Size()), make([][]tensor.Tensor, g.Size())
	for r := range g.Size() {
		out[r] = []tensor.Tensor{g.first.New(tensor.U8, some)}
		room[r] = []tensor.Tensor{g.first.New(tensor.U8, some)}
	}
	var id uniqueID
	if g.Rank() == 0 {
		if id, err = g.library.newID(); err != nil {
			return err
		}
	}
	all, err := g.Comm.Share(id.Internal[:])
	if err != nil {
		return named(err, g.creation())
	}
	copy(id.Internal[:], all[0])
	handle, err := g.connect(id, out, room)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handle = handle
	return nil
}

// creation names the operation of open in errors.
func (g *group) creation() string { return "the creation of NCCL's communicator of ranks " + g.names() }

// connect joins the communicator and sends some bytes from every rank to every other, because NCCL connects two ranks
// when they first exchange data, and the host waits for that. Later transfers use the existing connections. NCCL has
// no deadline for either step, so a goroutine makes the calls. When the deadline has passed or the groups end, the
// goroutine is left behind, and its resources are not freed.
func (g *group) connect(id uniqueID, out, room [][]tensor.Tensor) (uintptr, error) {
	var handle atomic.Uintptr
	done := make(chan error, 1)
	go func() {
		done <- g.side.Apart(func(stream uintptr) error {
			made, err := g.library.join(g.Size(), id, g.Rank())
			if err != nil {
				return err
			}
			handle.Store(made)
			return g.queue(made, out, room, g.Size(), stream)
		})
	}()
	deadline := time.NewTimer(g.timeout)
	defer deadline.Stop()
	var err error
	select {
	case err = <-done:
		if err == nil {
			return handle.Load(), nil
		}
	case <-g.over:
		g.left, err = true, g.failure(g.creation())
	case <-deadline.C:
		g.left, err = true, g.late()
	}
	if made := handle.Load(); made != 0 {
		go g.library.abort(made)
	}
	return 0, err
}

// late is the error if NCCL does not connect this rank to the others in time.
func (g *group) late() error {
	host, _ := os.Hostname()
	return &comm.LostError{Rank: g.me, Host: host, At: g.creation(), Err: fmt.Errorf(
		"NCCL has not connected the cards of these ranks for %v, though all of them have come\n"+
			"  NCCL_DEBUG=INFO says what it tries; NCCL_SOCKET_IFNAME chooses the network", g.timeout)}
}
