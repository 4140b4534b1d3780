package local

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"anneal/comm"
	"anneal/internal/filetest"
	_ "anneal/internal/torture"
	"anneal/tensor"
)

// each runs a program on every rank of a group at once and returns their errors.
func each(group []comm.Comm, program func(c comm.Comm) error) []error {
	errs := make([]error, len(group))
	var all sync.WaitGroup
	for r, c := range group {
		all.Go(func() { errs[r] = program(c) })
	}
	all.Wait()
	return errs
}

// toAll is one tensor for each rank, the same for all.
func toAll(n int, x *tensor.Tensor) [][]tensor.Tensor {
	out := make([][]tensor.Tensor, n)
	for r := range out {
		out[r] = []tensor.Tensor{*x}
	}
	return out
}

func TestTensorsAreReadWhereTheyWereMade(t *testing.T) {
	const n = 3
	sent := make([]*tensor.Tensor, n)
	for r := range sent {
		sent[r] = tensor.Of([]float32{float32(r)})
	}
	for _, err := range each(New(n, Options{}), func(c comm.Comm) error {
		x := c.NewExchange("x", toAll(n, sent[c.Rank()]), nil)
		x.Start(n)
		if err := x.Wait(); err != nil {
			return err
		}
		for r := range n {
			if got := x.From(r)[0].Pointer(); got != sent[r].Pointer() {
				return fmt.Errorf("rank %d has a copy of what rank %d sent", c.Rank(), r)
			}
		}
		x.Release()
		return x.Sent()
	}) {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestSentWaitsForReaders(t *testing.T) {
	group := New(2, Options{})
	x := tensor.Of([]float32{1})
	read := make(chan bool)
	for _, err := range each(group, func(c comm.Comm) error {
		e := c.NewExchange("x", toAll(2, x), nil)
		e.Start(1)
		if err := e.Wait(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			e.Release()
			read <- true // rank 1 has the tensor and reads it for a while
			if err := e.Sent(); err != nil {
				return err
			}
			x.F32()[0] = 2
			return nil
		}
		<-read
		time.Sleep(20 * time.Millisecond)
		if got := e.From(0)[0].F32()[0]; got != 1 {
			return fmt.Errorf("rank 1 read %v: Sent did not wait for it", got)
		}
		e.Release()
		return nil
	}) {
		if err != nil {
			t.Error(err)
		}
	}
}

// A rank that fails may free its tensors after Abort, and after Sent; nobody may be reading them then.
func TestAFailedGroupWaitsForReaders(t *testing.T) {
	for _, how := range []string{"Abort", "Sent"} {
		x := tensor.Of([]float32{1})
		reading := make(chan bool)
		each(New(2, Options{}), func(c comm.Comm) error {
			e := c.NewExchange("x", toAll(2, x), nil)
			e.Start(1)
			if c.Rank() == 0 {
				<-reading
				if how == "Abort" {
					c.Abort(errors.New("out of memory"))
				} else if e.Sent() == nil {
					t.Error("Sent returned no error after Abort")
				}
				x.F32()[0] = 2
				return nil
			}
			if err := e.Wait(); err != nil {
				t.Error(err)
			}
			if how == "Sent" {
				go c.Abort(errors.New("out of memory"))
			}
			reading <- true
			time.Sleep(20 * time.Millisecond)
			if got := e.From(0)[0].F32()[0]; got != 1 {
				t.Errorf("rank 1 read %v: %s did not wait for it", got, how)
			}
			e.Release()
			return nil
		})
	}
}

func TestStepsAllocateNothing(t *testing.T) {
	const n = 2
	group := New(n, Options{})
	x := tensor.Of([]float32{1})
	step := func(e comm.Transfer) {
		e.Start(n)
		if e.Wait() != nil || len(e.From(0)) != 1 {
			t.Error("no tensor from rank 0")
		}
		e.Release()
		if err := e.Sent(); err != nil {
			t.Error(err)
		}
	}
	each(group, func(c comm.Comm) error {
		e := c.NewExchange("x", toAll(n, x), nil)
		if c.Rank() > 0 {
			for range 101 {
				step(e)
			}
		} else if allocs := filetest.AllocsPerRun(100, func() { step(e) }); allocs > 0 {
			t.Errorf("a transfer allocates %v times", allocs)
		}
		return nil
	})
}

func TestAbortEndsWaitsOfAllRanks(t *testing.T) {
	cause := errors.New("the device is on fire")
	errs := each(New(4, Options{}), func(c comm.Comm) error {
		x := c.NewExchange("the weights", toAll(4, tensor.Of([]float32{1})), nil)
		switch c.Rank() {
		case 0:
			_, err := c.Share(nil)
			return err
		case 3:
			time.Sleep(10 * time.Millisecond)
			c.Abort(cause)
			return nil
		}
		_, err := c.Share(nil)
		if again := x.Sent(); again == nil {
			t.Error("a call after the end of the group gives no error")
		}
		return err
	})
	for r, err := range errs[:3] {
		var lost *comm.LostError
		if !errors.As(err, &lost) || lost.Rank != 3 || !errors.Is(err, cause) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestDeadlineNamesTheRankThatHasNotCome(t *testing.T) {
	const limit = 50 * time.Millisecond
	begun := time.Now()
	errs := each(New(4, Options{Timeout: limit}), func(c comm.Comm) error {
		x := c.NewExchange("the weights of block 1", toAll(4, tensor.Of([]float32{1})), nil)
		if c.Rank() == 2 {
			return nil // never comes
		}
		x.Start(4)
		return x.Wait()
	})
	if took := time.Since(begun); took < limit || took > limit+2*time.Second {
		t.Errorf("the deadline of %v passed after %v", limit, took)
	}
	late := 0
	for r, err := range errs {
		var lost *comm.LostError
		if r == 2 {
			continue
		}
		if !errors.As(err, &lost) || lost.Rank != 2 || lost.At != "the weights of block 1" {
			t.Errorf("rank %d: %v", r, err)
			continue
		}
		if lost.For == limit {
			late++
		}
	}
	if late == 0 {
		t.Error("no error says how long its rank waited")
	}
}

// Rank 0 waits for rank 1 in one group, which waits for rank 2 in another, which hangs.
func TestDeadlineFollowsWaitsThroughGroups(t *testing.T) {
	errs := each(New(3, Options{Timeout: 50 * time.Millisecond}), func(c comm.Comm) error {
		me := c.Rank()
		if me == 2 {
			return nil
		}
		list := []int{1, 0}
		if me == 1 {
			time.Sleep(10 * time.Millisecond) // so that the deadline of rank 0 is the first to pass
			list = []int{2, 1}
		}
		g, err := c.Group(list)
		if err != nil {
			return err
		}
		_, err = g.Share(nil)
		return err
	})
	for r, err := range errs[:2] {
		var lost *comm.LostError
		if !errors.As(err, &lost) || lost.Rank != 2 {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// A rank that has nothing for another goes on, and sends it something in the next round: what the other gets in this
// one is nothing.
func TestSetDoesNotChangeWhatCame(t *testing.T) {
	set := make(chan bool)
	for _, err := range each(New(2, Options{}), func(c comm.Comm) error {
		none, some := make([][]tensor.Tensor, 2), toAll(2, tensor.Of([]float32{1}))
		x := c.NewExchange("x", none, nil)
		for round, out := range [][][]tensor.Tensor{none, some} {
			if round == 1 {
				x.Set(out, nil)
				if c.Rank() == 0 {
					set <- true
				}
			}
			x.Start(2)
			if err := x.Wait(); err != nil {
				return err
			}
			if round == 0 && c.Rank() == 1 {
				<-set
			}
			if got := len(x.From(1 - c.Rank())); got != round {
				return fmt.Errorf("rank %d gets %d tensors in round %d", c.Rank(), got, round)
			}
			x.Release()
			if err := x.Sent(); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Error(err)
		}
	}
}

// What is under way may not be set.
func TestSetTooEarlyIsAnError(t *testing.T) {
	for _, what := range []string{"before it has released", "before Sent"} {
		errs := each(New(2, Options{}), func(c comm.Comm) error {
			out := toAll(2, tensor.Of([]float32{1}))
			x := c.NewExchange("the weights", out, nil)
			x.Start(2)
			if err := x.Wait(); err != nil {
				return err
			}
			if what == "before Sent" {
				x.Release()
			}
			x.Set(out, nil)
			return x.Sent()
		})
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s, rank %d: %v", what, r, err)
			}
		}
	}
}

// Rank 0 waits for rank 1, which waits for rank 2, which hangs.
func TestDeadlineNamesTheLastOfThoseWhoWait(t *testing.T) {
	errs := each(New(3, Options{Timeout: 50 * time.Millisecond}), func(c comm.Comm) error {
		first := c.NewExchange("first", toAll(3, tensor.Of([]float32{1})), nil)
		second := c.NewExchange("second", toAll(3, tensor.Of([]float32{1})), nil)
		first.Start(2)
		if c.Rank() == 2 {
			return nil // does not release what came
		}
		if c.Rank() == 1 {
			time.Sleep(10 * time.Millisecond) // so that the deadline of rank 0 is the first to pass
		}
		if err := first.Wait(); err != nil {
			return err
		}
		first.Release()
		if c.Rank() == 1 {
			if err := first.Sent(); err != nil {
				return err
			}
		}
		second.Start(2)
		return second.Wait()
	})
	var lost *comm.LostError
	if !errors.As(errs[0], &lost) || lost.Rank != 2 || lost.At != "second" || lost.For == 0 {
		t.Errorf("rank 0: %v", errs[0])
	}
}

func TestRanksThatDifferAreTold(t *testing.T) {
	one, two := tensor.Of([]float32{1}), tensor.Of([]float32{1, 2})
	for name, c := range map[string]struct {
		program func(c comm.Comm)
		words   []string
	}{
		"calls": {func(c comm.Comm) {
			x := c.NewExchange("the weights", toAll(2, one), nil)
			if c.Rank() == 0 {
				x.Start(2)
			} else {
				c.Share(nil)
			}
		}, []string{"starts the weights with 2 senders", "shares a message"}},
		"names": {func(c comm.Comm) {
			c.NewExchange([]string{"the weights", "the gradients"}[c.Rank()], toAll(2, one), nil)
		}, []string{"prepares the weights", "prepares the gradients"}},
		"order": {func(c comm.Comm) {
			x := []comm.Transfer{c.NewExchange("A", toAll(2, one), nil), c.NewExchange("B", toAll(2, one), nil)}
			x[c.Rank()].Start(2)
		}, []string{"starts A", "starts B"}},
		"senders": {func(c comm.Comm) {
			c.NewExchange("A", toAll(2, one), nil).Start(1 + c.Rank())
		}, []string{"1 senders", "2 senders"}},
		"calls of a group": {func(c comm.Comm) {
			g, _ := c.Group([]int{1, 0})
			x := g.NewExchange("A", toAll(2, one), nil)
			if c.Rank() == 0 {
				x.Set(toAll(2, two), nil)
			} else {
				x.Start(2)
			}
		}, []string{"sets A", "starts A", "rank 0", "rank 1"}},
		"shapes that are set": {func(c comm.Comm) {
			x := c.NewExchange("A", toAll(2, one), toAll(2, one))
			mine := []*tensor.Tensor{one, two}[c.Rank()]
			x.Set(toAll(2, mine), toAll(2, mine))
		}, []string{"1 of f32", "2 of f32"}},
		"shapes": {func(c comm.Comm) {
			mine := []*tensor.Tensor{one, two}[c.Rank()]
			c.NewExchange("A", toAll(2, mine), toAll(2, mine))
		}, []string{"1 of f32", "2 of f32"}},
	} {
		t.Run(name, func(t *testing.T) {
			told := false
			for r, err := range each(New(2, Options{Timeout: time.Minute}), func(x comm.Comm) error {
				c.program(x)
				_, err := x.Share(nil)
				return err
			}) {
				var mismatch *comm.MismatchError
				if !errors.As(err, &mismatch) {
					t.Errorf("rank %d: %v", r, err)
					continue
				}
				told = true
				for _, w := range c.words {
					if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(w)) {
						t.Errorf("%q is not in %q", w, err)
					}
				}
			}
			if !told {
				t.Error("nobody was told")
			}
		})
	}
}

// Lists that do not fit the group are an error of every rank, not a panic at the first start.
func TestListsForOtherRanksAreAnError(t *testing.T) {
	if list := New(-1, Options{}); len(list) != 0 {
		t.Errorf("%d ranks", len(list))
	}
	one := tensor.Of([]float32{1})
	for r, err := range each(New(2, Options{Timeout: time.Minute}), func(c comm.Comm) error {
		out := toAll(2, one)
		if c.Rank() == 1 {
			out = nil
		}
		x := c.NewExchange("the weights", out, nil)
		x.Start(2)
		return x.Wait()
	}) {
		if err == nil || !strings.Contains(err.Error(), "prepares the weights with tensors for 0 ranks") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
