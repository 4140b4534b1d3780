package commtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"anneal/comm"
	"anneal/tensor"
)

// Program makes the calls of a transport on one rank of a group, and checks what it receives. Every rank of the group
// calls it. The contents of a message are a function of its sender, its receiver and its round.
func Program(c comm.Comm) error {
	for _, part := range []struct {
		name string
		test func(c comm.Comm) error
	}{
		{"messages", messages},
		{"one transfer", one},
		{"the first ranks send", firstSenders},
		{"several transfers under way", several},
		{"equal tensors to all", equal},
		{"groups", groups},
		{"groups that make different numbers of calls", uneven},
		{"groups that cannot be", refused},
		{"a transfer that changes", changing},
		{"a pipeline", pipeline},
		{"1,000 random steps", func(c comm.Comm) error { return Random(c, 1, 1000) }},
	} {
		if err := part.test(c); err != nil {
			return fmt.Errorf("rank %d of %d: %s: %w", c.Rank(), c.Size(), part.name, err)
		}
	}
	return nil
}

// messages shares messages of different lengths, in memory that is used again.
func messages(c comm.Comm) error {
	var mine []byte
	for round := range 20 {
		mine = append(mine[:0], message(c.Rank(), round)...)
		all, err := c.Share(mine)
		if err != nil {
			return err
		}
		if len(all) != c.Size() {
			return fmt.Errorf("%d messages from %d ranks", len(all), c.Size())
		}
		for r, got := range all {
			if want := message(r, round); !bytes.Equal(got, want) {
				return fmt.Errorf("call %d: rank %d said %d bytes, %d bytes came or they differ",
					round, r, len(want), len(got))
			}
		}
	}
	return nil
}

// message returns a rank's message: from nothing to some pages.
func message(rank, round int) []byte {
	m := make([]byte, []int{0, 1, 7, 8, 1000, 20000}[(rank*5+round)%6])
	fill(m, key{from: rank, round: round})
	return m
}

// one makes one transfer again and again.
func one(c comm.Comm) error {
	x := newExchange(c, "one", func(from, to, _ int) int { return from + 2*to }, 1)
	for range 5 {
		if err := x.make(c.Size()); err != nil {
			return err
		}
	}
	return x.Sent()
}

// firstSenders has all, some and none of the ranks send.
func firstSenders(c comm.Comm) error {
	x := newExchange(c, "from the first ranks", func(from, to, k int) int { return 3*from + to + k }, 2)
	for senders := c.Size(); senders >= 0; senders-- {
		if err := x.make(senders); err != nil {
			return err
		}
	}
	return x.make(c.Size())
}

// several has several transfers in flight at once, some of them empty, and ends them out of order.
func several(c comm.Comm) error {
	var list []*exchange
	for i, size := range []func(from, to, k int) int{
		func(_, _, _ int) int { return 1000 },
		func(_, _, _ int) int { return 0 }, // tensors without elements
		func(_, _, _ int) int { return -1 },
		func(from, to, _ int) int { return 100*((from+to)%3) - 1 }, // to some ranks no tensors
		func(from, _, k int) int { return 10*k - from },
		func(_, to, _ int) int { return 70000 * (1 - min(to, 1)) }, // most of it to rank 0
	} {
		list = append(list, newExchange(c, fmt.Sprintf("one of several, %d", i), size, 3))
	}
	for range 3 {
		for _, x := range list {
			if err := x.start(c.Size()); err != nil {
				return err
			}
		}
		for i := range list {
			if err := list[len(list)-1-i].end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// equal sends the same tensors to every rank, as weights are.
func equal(c comm.Comm) error {
	mine := tensor.Of(make([]float32, 5000))
	out := make([][]tensor.Tensor, c.Size())
	room := make([][]tensor.Tensor, c.Size())
	for r := range out {
		out[r] = []tensor.Tensor{*mine}
		room[r] = []tensor.Tensor{*tensor.Of(make([]float32, 5000))}
	}
	x := c.NewExchange("the same to all", out, roomFor(c, room))
	for round := range 3 {
		if err := x.Sent(); err != nil {
			return err
		}
		fill(mine.Raw(), key{from: c.Rank(), round: round})
		x.Start(c.Size())
		if err := x.Wait(); err != nil {
			return err
		}
		for r := range c.Size() {
			if err := compare(x.From(r)[0].Raw(), key{from: r, round: round}); err != nil {
				return err
			}
		}
		x.Release()
	}
	return x.Sent()
}

// Random makes random calls, the same on all ranks, and checks what it receives.
func Random(c comm.Comm, seed uint64, steps int) error {
	random := rand.New(rand.NewPCG(seed, 0))
	var idle, started []*exchange
	for i := range 8 {
		scale := []int{1, 10, 300, 5000}[random.IntN(4)]
		salt := random.Uint64()
		idle = append(idle, newExchange(c, fmt.Sprintf("random %d", i), func(from, to, k int) int {
			h := rand.New(rand.NewPCG(salt, uint64(from<<20|to<<10|k)))
			return h.IntN(scale+1) - h.IntN(2)
		}, 1+random.IntN(3)))
	}
	for step := range steps {
		switch what := random.IntN(10); {
		case what == 0:
			all, err := c.Share(message(c.Rank(), step))
			if err != nil {
				return err
			}
			for r := range all {
				if !bytes.Equal(all[r], message(r, step)) {
					return fmt.Errorf("step %d: the message of rank %d differs", step, r)
				}
			}
		case what < 6 && len(idle) > 0:
			i := random.IntN(len(idle))
			x := idle[i]
			idle = append(idle[:i], idle[i+1:]...)
			if err := x.start(random.IntN(c.Size() + 1)); err != nil {
				return err
			}
			started = append(started, x)
		case len(started) > 0:
			i := random.IntN(len(started))
			x := started[i]
			started = append(started[:i], started[i+1:]...)
			if err := x.end(); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
			idle = append(idle, x)
		}
	}
	for _, x := range started {
		if err := x.end(); err != nil {
			return err
		}
	}
	return nil
}

// exchange is a transfer whose contents are known.
type exchange struct {
	comm.Transfer
	c       comm.Comm
	name    string
	out     [][]tensor.Tensor
	room    [][]tensor.Tensor
	size    func(from, to, k int) int
	count   int
	round   int
	senders int
}

// newExchange prepares a transfer of count tensors between any two ranks; size gives their elements, −1 for none.
func newExchange(c comm.Comm, name string, size func(from, to, k int) int, count int) *exchange {
	n := c.Size()
	x := &exchange{c: c, name: name, out: make([][]tensor.Tensor, n), room: make([][]tensor.Tensor, n)}
	x.lay(count, size)
	x.Transfer = c.NewExchange(name, x.out, roomFor(c, x.room))
	return x
}

// change makes the transfer send other tensors from the next start on.
func (x *exchange) change(count int, size func(from, to, k int) int) {
	x.lay(count, size)
	x.Set(x.out, roomFor(x.c, x.room))
}

// lay makes the tensors that this rank sends, and the room for those that come.
func (x *exchange) lay(count int, size func(from, to, k int) int) {
	x.size, x.count = size, count
	for r := range x.c.Size() {
		x.out[r], x.room[r] = x.tensors(x.c.Rank(), r), x.tensors(r, x.c.Rank())
	}
}

// roomFor is the room that a transport needs.
func roomFor(c comm.Comm, room [][]tensor.Tensor) [][]tensor.Tensor {
	if c.InPlace() {
		return nil
	}
	return room
}

// tensors makes the tensors that one rank sends another.
func (x *exchange) tensors(from, to int) (list []tensor.Tensor) {
	for k := range x.count {
		n := x.size(from, to, k)
		switch {
		case n < 0:
		case k%2 == 0:
			list = append(list, *tensor.Of(make([]float32, n)))
		default:
			list = append(list, *tensor.Of(make([]tensor.BFloat16, n)))
		}
	}
	return list
}

// make makes the whole transfer.
func (x *exchange) make(senders int) error {
	if err := x.start(senders); err != nil {
		return err
	}
	return x.end()
}

// start fills the tensors anew and starts.
func (x *exchange) start(senders int) error {
	if err := x.Sent(); err != nil {
		return err
	}
	x.round++
	x.senders = senders
	if me := x.c.Rank(); me < senders {
		for to, list := range x.out {
			for k := range list {
				fill(list[k].Raw(), key{me, to, k, x.round})
			}
		}
	}
	x.Start(senders)
	return nil
}

// end waits, checks what came and releases it.
func (x *exchange) end() error {
	if err := x.Wait(); err != nil {
		return err
	}
	me := x.c.Rank()
	for from := range x.senders {
		got, want := x.From(from), x.tensors(from, me)
		if len(got) != len(want) {
			return fmt.Errorf("%s: %d tensors from rank %d, want %d", x.name, len(got), from, len(want))
		}
		for k := range got {
			if got[k].DType() != want[k].DType() || got[k].Len() != want[k].Len() {
				return fmt.Errorf("%s: tensor %d from rank %d is %v, want %v", x.name, k, from, &got[k], &want[k])
			}
			if err := compare(got[k].Raw(), key{from, me, k, x.round}); err != nil {
				return fmt.Errorf("%s: tensor %d, round %d: %w", x.name, k, x.round, err)
			}
		}
	}
	x.Release()
	return nil
}

// key identifies the contents of a tensor: its sender, its receiver, its number and the round.
type key struct{ from, to, tensor, round int }

// fill fills memory with bytes that depend on the key and the place.
func fill(b []byte, k key) {
	word := k.word()
	for i := range b {
		if i%8 == 0 {
			word = word*6364136223846793005 + 1442695040888963407
		}
		b[i] = byte(word >> (8 * (i % 8)))
	}
}

func (k key) word() uint64 {
	return rand.NewPCG(uint64(k.from)<<32|uint64(k.to), uint64(k.tensor)<<32|uint64(k.round)).Uint64()
}

// compare returns the first place where memory differs from what fill writes.
func compare(got []byte, k key) error {
	want := make([]byte, len(got))
	fill(want, k)
	if bytes.Equal(got, want) {
		return nil
	}
	at := 0
	for got[at] == want[at] {
		at++
	}
	var word [8]byte
	copy(word[:], got[at:])
	return fmt.Errorf("byte %d of %d from rank %d is wrong (%016x)", at, len(got), k.from,
		binary.BigEndian.Uint64(word[:]))
}
