package commtest

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"

	"anneal/comm"
	"anneal/tensor"
)

// groups makes calls in groups that share ranks, list them in any order, are groups of groups, and have one rank.
func groups(c comm.Comm) error {
	n, me := c.Size(), c.Rank()
	row, err := c.Group(pick(n, func(r int) bool { return r/2 == me/2 }))
	if err != nil {
		return err
	}
	column, err := c.Group(backwards(pick(n, func(r int) bool { return r%2 == me%2 })))
	if err != nil {
		return err
	}
	alone, err := column.Group([]int{column.Rank()})
	if err != nil {
		return err
	}
	again, err := c.Group(backwards(pick(n, func(int) bool { return true })))
	if err != nil {
		return err
	}
	if got, want := again.Rank(), n-1-me; got != want {
		return fmt.Errorf("rank %d of a group listed backwards is %d, want %d", me, got, want)
	}
	for i, g := range []comm.Comm{row, column, alone, again, c} {
		if err := Random(g, uint64(i), 100); err != nil {
			return fmt.Errorf("group %d: %w", i, err)
		}
	}
	return crossed(row, column)
}

// crossed has transfers of two groups in flight at once, and ends them out of order.
func crossed(row, column comm.Comm) error {
	size := func(from, to, k int) int { return 1000*from + 10*to + k }
	x, y := newExchange(row, "of a row", size, 2), newExchange(column, "of a column", size, 3)
	for range 5 {
		if err := x.start(row.Size()); err != nil {
			return err
		}
		if err := y.start(column.Size()); err != nil {
			return err
		}
		all, err := column.Share(message(column.Rank(), 5))
		if err != nil {
			return err
		}
		for r := range all {
			if !bytes.Equal(all[r], message(r, 5)) {
				return fmt.Errorf("the message of rank %d of a column differs", r)
			}
		}
		if err := y.end(); err != nil {
			return err
		}
		if err := x.end(); err != nil {
			return err
		}
	}
	return nil
}

// uneven has groups make different numbers of calls: one far more than the others.
func uneven(c comm.Comm) error {
	half, err := c.Group(pick(c.Size(), func(r int) bool { return r%2 == c.Rank()%2 }))
	if err != nil {
		return err
	}
	for round := range 4 {
		if err := Random(half, uint64(round), 10+100*(c.Rank()%2)); err != nil {
			return err
		}
	}
	return Random(c, 5, 50)
}

// refused asks for invalid groups.
func refused(c comm.Comm) error {
	for _, list := range [][]int{nil, {c.Rank(), c.Rank()}, {c.Rank(), -1}, {c.Rank(), c.Size()}} {
		if _, err := c.Group(list); err == nil {
			return fmt.Errorf("there is a group of the ranks %v among %d", list, c.Size())
		}
	}
	if c.Size() > 1 {
		if _, err := c.Group([]int{(c.Rank() + 1) % c.Size()}); err == nil {
			return fmt.Errorf("rank %d has a group to which it does not belong", c.Rank())
		}
	}
	_, err := c.Share(nil)
	return err
}

// changing sends other tensors in every Start, in reused lists.
func changing(c comm.Comm) error {
	x := newExchange(c, "one that changes", func(from, to, _ int) int { return from + 2*to }, 1)
	for round := range 12 {
		if round%3 != 1 { // now and then the same again
			if err := x.Sent(); err != nil {
				return err
			}
			x.change(1+round%3, func(from, to, k int) int { return (7*from+13*to+100*k*round)%(300*round+1) - 1 })
		}
		if err := x.make(c.Size() - round%2); err != nil {
			return err
		}
	}
	return x.Sent()
}

// pipeline has every rank pass the tensors from the rank before on to the next, several transfers at a time, and send
// answers back. The groups are pairs: the first sends, the second receives.
func pipeline(c comm.Comm) error {
	const ahead, micro = 3, 10
	me, last := c.Rank(), c.Size()-1
	var before, after pair
	for r := range last { // pairs in one order, since NewExchange may wait
		link := &after
		if me == r+1 {
			link = &before
		}
		if me == r || me == r+1 {
			if err := link.open(c, r, r+1, ahead); err != nil {
				return err
			}
		}
	}
	for step := range micro + ahead {
		if i := step; i < micro {
			if err := before.forward.receive(i); err != nil {
				return err
			}
			if err := after.forward.send(i); err != nil {
				return err
			}
		}
		if i := step - ahead; i >= 0 {
			if err := after.back.receive(i); err != nil {
				return err
			}
			if err := before.back.send(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// pair is two neighbours, with transfers in both directions. The zero value has no neighbour.
type pair struct{ forward, back way }

type way []*exchange

func (p *pair) open(c comm.Comm, from, to, count int) error {
	for _, w := range []struct {
		way  *way
		list []int
	}{{&p.forward, []int{from, to}}, {&p.back, []int{to, from}}} {
		g, err := c.Group(w.list)
		if err != nil {
			return err
		}
		for k := range count {
			*w.way = append(*w.way, newExchange(g, fmt.Sprintf("slot %d of %v", k, w.list), oneWay(2000), 1))
		}
	}
	return nil
}

// oneWay is the size of tensors that only the first rank sends.
func oneWay(n int) func(from, to, k int) int {
	return func(from, _, _ int) int { return n*(1-from) - from }
}

// send sends micro-batch i, as soon as its slot is free.
func (w way) send(i int) error {
	if len(w) == 0 {
		return nil
	}
	x := w[i%len(w)]
	if err := x.Sent(); err != nil {
		return err
	}
	x.change(1, oneWay(100*i))
	if err := x.start(1); err != nil {
		return err
	}
	return x.end()
}

func (w way) receive(i int) error {
	if len(w) == 0 {
		return nil
	}
	x := w[i%len(w)]
	x.change(1, oneWay(100*i))
	return x.make(1)
}

// Ahead has the first of two ranks send several transfers before the second starts any. It ends only on transports in
// which Start does not wait.
func Ahead(c comm.Comm) error {
	if c.Rank() > 1 || c.Size() < 2 {
		return nil
	}
	var list [2]way // the transfers, and one more that says that they have been started
	for i, count := range []int{4, 1} {
		g, err := c.Group([]int{0, 1})
		if err != nil {
			return err
		}
		for k := range count {
			list[i] = append(list[i], newExchange(g, fmt.Sprintf("transfer %d of %d", k, i), oneWay(100000), 1))
		}
	}
	data, said := list[0], list[1]
	for round := range 3 {
		if c.Rank() == 1 {
			if err := said.receive(round); err != nil {
				return err
			}
		}
		for k := range data {
			act := data.send
			if c.Rank() == 1 {
				act = data.receive
			}
			if err := act(len(data)*round + k); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			if err := said.send(round); err != nil {
				return err
			}
		}
	}
	return nil
}

// Allocations tests whether transfers that send other tensors every time allocate memory. It counts the allocations of
// the whole process, so nothing else may run in it.
func Allocations(c comm.Comm) error {
	const longest = 3
	n := c.Size()
	var mine [longest]tensor.Tensor
	rooms := make([][longest]tensor.Tensor, n) // by rank
	for k := range longest {
		mine[k] = *tensor.Of(make([]float32, 100*(k+1)))
		for r := range n {
			rooms[r][k] = *tensor.Of(make([]float32, 100*(k+1)))
		}
	}
	out, room := make([][]tensor.Tensor, n), make([][]tensor.Tensor, n)
	lay := func(k int) {
		for r := range n {
			out[r], room[r] = append(out[r][:0], mine[k]), append(room[r][:0], rooms[r][k])
		}
	}
	lay(0)
	x := c.NewExchange("one without garbage", out, roomFor(c, room))
	turn := func(i int) error {
		lay(i % longest)
		x.Set(out, roomFor(c, room))
		x.Start(n)
		if err := x.Wait(); err != nil {
			return err
		}
		for r := range n {
			if got, want := x.From(r)[0].Len(), 100*(i%longest+1); got != want {
				return fmt.Errorf("%d elements from rank %d, want %d", got, r, want)
			}
		}
		x.Release()
		return x.Sent()
	}
	const turns = 100
	var before, after runtime.MemStats
	for i := range 2 * turns {
		if i == turns {
			runtime.ReadMemStats(&before)
		}
		if err := turn(i); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.Mallocs - before.Mallocs; got > turns/2 { // some are the runtime's own
		return fmt.Errorf("%d transfers made %d allocations", turns, got)
	}
	return nil
}

// pick returns the ranks below n that are in a group.
func pick(n int, in func(r int) bool) (list []int) {
	for r := range n {
		if in(r) {
			list = append(list, r)
		}
	}
	return list
}

func backwards(list []int) []int {
	slices.Reverse(list)
	return list
}
