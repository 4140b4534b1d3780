package commtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"anneal/comm"
	"anneal/tensor"
)

// A Maker returns a group of n ranks for goroutines of this process, in which a rank waits for another for at most
// timeout.
type Maker func(n int, timeout time.Duration) []comm.Comm

// Run tests a transport.
func Run(t *testing.T, group Maker) {
	t.Run("Program", func(t *testing.T) {
		for _, n := range []int{1, 2, 3, 5} {
			check(t, Each(group(n, time.Minute), Program))
		}
	})
	t.Run("Strict", func(t *testing.T) {
		check(t, Each(group(3, time.Minute), func(c comm.Comm) error { return Program(Strict(c)) }))
	})
	t.Run("Uneven", func(t *testing.T) {
		check(t, Each(group(3, time.Minute), func(c comm.Comm) error { return Random(wander(c), 2, 300) }))
	})
	t.Run("Ahead", func(t *testing.T) { check(t, Each(group(3, time.Minute), Ahead)) })
	t.Run("Allocations", func(t *testing.T) { check(t, Each(group(2, time.Minute), Allocations)) })
	t.Run("Abort", func(t *testing.T) { testAbort(t, group) })
	t.Run("Loss", func(t *testing.T) { testLoss(t, group) })
	t.Run("LossInAGroup", func(t *testing.T) { testLossInAGroup(t, group) })
	t.Run("After", func(t *testing.T) { testAfter(t, group) })
}

// Each runs a program on every rank of a group at once and returns the errors by rank. An error on one rank, except
// one from Kill, ends the others. Each closes the group.
func Each(group []comm.Comm, program func(c comm.Comm) error) []error {
	errs := make([]error, len(group))
	var all sync.WaitGroup
	for r, c := range group {
		all.Go(func() {
			if errs[r] = program(c); errs[r] != nil && !errors.Is(errs[r], ErrKilled) {
				c.Abort(errs[r])
			}
		})
	}
	all.Wait()
	for r, c := range group {
		if err := c.Close(); err != nil && errs[r] == nil {
			errs[r] = fmt.Errorf("closing: %w", err)
		}
	}
	return errs
}

func check(t *testing.T, errs []error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// testAbort aborts on one rank while the others are at random places of a program.
func testAbort(t *testing.T, group Maker) {
	cause := errors.New("the device failed")
	for n := 2; n < 5; n++ {
		for call := range 12 {
			victim := call % n
			errs := Each(group(n, time.Minute), func(c comm.Comm) error {
				if c.Rank() != victim {
					return Random(c, uint64(call), 200)
				}
				if err := Random(Kill(c, 10*call), uint64(call), 200); !errors.Is(err, ErrKilled) {
					t.Errorf("rank %d ends with %v before its call %d", victim, err, 10*call)
				}
				c.Abort(cause)
				return nil
			})
			for r, err := range errs {
				var lost *comm.LostError
				if r != victim && (!errors.As(err, &lost) || !errors.Is(err, cause)) {
					t.Errorf("rank %d of %d, where rank %d aborts at its call %d: %v", r, n, victim, 10*call, err)
				}
			}
		}
	}
}

// testLoss has one rank hang: the others end when the deadline has passed, and name it.
func testLoss(t *testing.T, group Maker) {
	const n, deadline, slack = 3, 150 * time.Millisecond, 2 * time.Second
	for _, call := range []int{0, 1, 7, 50} {
		victim := call % n
		var silent time.Time
		errs := Each(group(n, deadline), func(c comm.Comm) error {
			if c.Rank() != victim {
				return Random(c, 1, 300)
			}
			Random(Kill(c, call), 1, 300)
			silent = time.Now()
			return nil
		})
		if took := time.Since(silent); took > deadline+slack {
			t.Errorf("rank %d hangs at its call %d: the others end after %v", victim, call, took)
		}
		named := false
		for r, err := range errs {
			var lost *comm.LostError
			if r == victim {
				continue
			}
			if !errors.As(err, &lost) {
				t.Errorf("rank %d, where rank %d hangs at its call %d: %v", r, victim, call, err)
				continue
			}
			named = named || lost.Rank == victim && lost.For > 0 && lost.At != ""
		}
		if !named {
			t.Errorf("no error names rank %d, its operation and the time waited: %v", victim, errs)
		}
	}
}

// testLossInAGroup has a rank hang in a group: all ranks end, also those of other groups, and name it by its number in
// the world.
func testLossInAGroup(t *testing.T, group Maker) {
	const n, victim, deadline, slack = 5, 3, 150 * time.Millisecond, 2 * time.Second
	begun := time.Now()
	errs := Each(group(n, deadline), func(c comm.Comm) error {
		me := c.Rank()
		g, err := c.Group(backwards(pick(n, func(r int) bool { return r%2 == me%2 })))
		if err != nil {
			return err
		}
		if me == victim {
			g = Kill(g, 40)
		}
		if err := Random(g, 1, 200); err != nil || me%2 == 1 {
			return err
		}
		_, err = c.Share(nil) // the even ranks wait for the odd ones
		return err
	})
	if took := time.Since(begun); took > deadline+slack {
		t.Errorf("the ranks end after %v, with a deadline of %v", took, deadline)
	}
	named := false
	for r, err := range errs {
		var lost *comm.LostError
		switch {
		case r == victim:
		case !errors.As(err, &lost):
			t.Errorf("rank %d, where rank %d hangs in a group: %v", r, victim, err)
		default:
			named = named || lost.Rank == victim && lost.For > 0 && lost.At != ""
		}
	}
	if !named {
		t.Errorf("no error names rank %d: %v", victim, errs)
	}
}

// testAfter makes calls after the group has ended: they fail, and none waits.
func testAfter(t *testing.T, group Maker) {
	Each(group(2, time.Minute), func(c comm.Comm) error {
		one := tensor.Of([]float32{1})
		list := [][]tensor.Tensor{{*one}, {*one}}
		x := c.NewExchange("after the end", list, roomFor(c, [][]tensor.Tensor{{*one}, {*one}}))
		if c.Rank() == 0 {
			c.Abort(errors.New("the end"))
		}
		for range 2 {
			if _, err := c.Share(nil); err == nil {
				t.Error("Share works after the end")
			}
			x.Start(2)
			if x.Wait() == nil {
				t.Error("Wait works after the end")
			}
			if x.Sent() == nil {
				t.Error("Sent works after the end")
			}
		}
		return nil
	})
}

// wander returns a rank that pauses now and then, each rank at other places.
func wander(c comm.Comm) comm.Comm {
	return &wanderer{c, rand.New(rand.NewPCG(uint64(c.Rank()), 7))}
}

type wanderer struct {
	comm.Comm
	random *rand.Rand
}

func (w *wanderer) pause() {
	if w.random.IntN(4) == 0 {
		time.Sleep(time.Duration(w.random.IntN(300)) * time.Microsecond)
	}
}

func (w *wanderer) Share(mine []byte) ([][]byte, error) {
	w.pause()
	return w.Comm.Share(mine)
}

func (w *wanderer) Group(ranks []int) (comm.Comm, error) {
	c, err := w.Comm.Group(ranks)
	return &wanderer{c, w.random}, err
}

func (w *wanderer) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	return &wandering{w.Comm.NewExchange(name, out, room), w}
}

type wandering struct {
	comm.Transfer
	rank *wanderer
}

func (t *wandering) Start(senders int) {
	t.rank.pause()
	t.Transfer.Start(senders)
}

func (t *wandering) Wait() error {
	t.rank.pause()
	return t.Transfer.Wait()
}

func (t *wandering) Release() {
	t.rank.pause()
	t.Transfer.Release()
}
