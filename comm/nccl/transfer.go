//go:build cuda && linux

package nccl

import (
	"fmt"

	"github.com/zeebo/xxh3"

	"anneal/comm"
	"anneal/device/cuda"
	"anneal/tensor"
)

// transfer implements comm.Transfer.
type transfer struct {
	group *group
	name  string
	out   [][]tensor.Tensor
	room  [][]tensor.Tensor
	sent  []uint64 // by rank: a hash of the tensors sent to it
	comes []uint64 // and of the room for those from it
	mark  cuda.Mark

	busy    bool // between Start and Release
	sending bool // between Start and Sent
	expects bool // something comes to this rank
}

// NewExchange implements comm.Comm. The first of a group waits for all ranks.
func (g *group) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	n := g.Size()
	t := &transfer{group: g, name: name, sent: make([]uint64, n), comes: make([]uint64, n)}
	err := g.failure(name)
	if err == nil {
		err = g.open()
	}
	if err == nil {
		t.mark, err = g.newMark()
	}
	if err != nil {
		g.lose(g.mine(name, err))
	}
	t.set(out, room)
	return t
}

// Set implements comm.Transfer.
func (t *transfer) Set(out, room [][]tensor.Tensor) {
	if t.early("sets") {
		return
	}
	if t.sending {
		t.group.lose(t.group.mine(t.name, fmt.Errorf("rank %d sets %s before Sent", t.group.me, t.name)))
		return
	}
	t.set(out, room)
}

func (t *transfer) set(out, room [][]tensor.Tensor) {
	t.out, t.room = comm.Keep(t.out, out), comm.Keep(t.room, room)
	for r := range t.group.Size() {
		if r != t.group.Rank() {
			t.sent[r], t.comes[r] = shapes(t.name, t.out[r]), shapes(t.name, t.room[r])
		}
	}
}

// shapes returns a hash of a list's dtypes and lengths.
func shapes(name string, list []tensor.Tensor) uint64 {
	h := xxh3.HashString(name)
	for i := range list {
		for _, x := range [2]uint64{uint64(list[i].DType()), uint64(list[i].Len())} {
			h = (h ^ x) * 0x9e3779b97f4a7c15
			h ^= h >> 29
		}
	}
	return h
}

// early reports whether this rank has not released what it received, or the groups have ended.
func (t *transfer) early(does string) bool {
	if t.group.failure(t.name) != nil {
		return true
	}
	if t.busy {
		g := t.group
		g.lose(g.mine(t.name, fmt.Errorf("rank %d %s %s before it has released what came before", g.me, does, t.name)))
	}
	return t.busy
}

// Start implements comm.Transfer.
func (t *transfer) Start(senders int) {
	if t.early("starts") {
		return
	}
	g := t.group
	t.busy, t.sending, t.expects = true, g.Rank() < senders, false
	for r := range min(senders, g.Size()) {
		t.expects = t.expects || r != g.Rank() && len(t.room[r]) > 0
	}
	if err := g.launch(t, senders); err != nil {
		g.lose(g.mine(t.name, err))
		return
	}
	g.watch.add(t, senders)
}

// launch queues the transfer behind all kernels that were called.
func (g *group) launch(t *transfer, senders int) error {
	g.side.Follow()
	err := g.side.Do(func(stream uintptr) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.handle == 0 {
			return nil // all groups have ended
		}
		return g.queue(g.handle, t.out, t.room, senders, stream)
	})
	g.side.Set(t.mark)
	return err
}

// queue queues all sends and receives of the transfer as one group of the library.
func (g *group) queue(handle uintptr, out, room [][]tensor.Tensor, senders int, stream uintptr) error {
	if err := g.library.begin(); err != nil {
		return err
	}
	for r := range g.Size() {
		if r == g.Rank() {
			continue
		}
		if g.Rank() < senders {
			if err := g.move(true, out[r], r, handle, stream); err != nil {
				return err
			}
		}
		if r < senders {
			if err := g.move(false, room[r], r, handle, stream); err != nil {
				return err
			}
		}
	}
	return g.library.end()
}

func (g *group) move(send bool, list []tensor.Tensor, peer int, handle, stream uintptr) error {
	for i := range list {
		if size := list[i].Bytes(); size > 0 {
			if err := g.library.move(send, list[i].Pointer(), size, peer, handle, stream); err != nil {
				return err
			}
		}
	}
	return nil
}

// Wait implements comm.Transfer. It makes later kernels wait for received tensors; nothing waits for those that this
// rank only sends.
func (t *transfer) Wait() error {
	if err := t.group.failure(t.name); err != nil {
		return err
	}
	if t.busy && t.expects {
		t.group.side.Precede(t.mark)
	}
	return nil
}

// From implements comm.Transfer.
func (t *transfer) From(r int) []tensor.Tensor {
	if r == t.group.Rank() {
		return t.out[r]
	}
	return t.room[r]
}

// Release implements comm.Transfer: the next Start is queued behind the kernels that read.
func (t *transfer) Release() { t.busy = false }

// Sent implements comm.Transfer. It makes later kernels wait.
func (t *transfer) Sent() error {
	if err := t.group.failure(t.name); err != nil {
		return err
	}
	if t.sending {
		t.sending = false
		t.group.side.Precede(t.mark)
	}
	return nil
}
