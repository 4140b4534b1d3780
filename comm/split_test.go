package comm_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"anneal/comm"
	"anneal/comm/local"
	_ "anneal/internal/torture"
	"anneal/tensor"
)

// Ranks of a group hear and get what their own group sends, also if only the first of each sends, and a group of one
// rank is alone.
func TestSplit(t *testing.T) {
	const groups = 2
	var wg sync.WaitGroup
	for r, world := range local.New(6, local.Options{Timeout: time.Minute}) {
		wg.Go(func() {
			g, err := comm.Split(world, groups)
			if err != nil {
				t.Error(err)
				return
			}
			k := r % groups
			if g.Rank() != r/groups || g.Size() != 3 {
				t.Errorf("rank %d is %d of %d", r, g.Rank(), g.Size())
			}
			all, err := g.Share([]byte{byte(r)})
			if err != nil || fmt.Sprint(all) != fmt.Sprintf("[[%d] [%d] [%d]]", k, k+2, k+4) {
				t.Errorf("rank %d hears %v, %v", r, all, err)
			}
			mine := tensor.View(tensor.U8, []byte{byte(10 + r)}, 1)
			out := [][]tensor.Tensor{{mine}, {mine}, {mine}}
			x := g.NewExchange("x", out, nil)
			x.Start(2)
			if err := x.Wait(); err != nil {
				t.Error(err)
				return
			}
			for m := range 2 {
				if got := x.From(m)[0].Raw()[0]; int(got) != 10+m*groups+k {
					t.Errorf("rank %d gets %d from rank %d of its group", r, got, m)
				}
			}
			x.Release()
			if err := x.Sent(); err != nil {
				t.Error(err)
			}
			if alone, err := comm.Split(world, 6); err != nil || alone.Size() != 1 || alone.Rank() != 0 {
				t.Errorf("rank %d is in a group of its own: %v, %v", r, alone, err)
			}
			if g, err := comm.Split(world, 0); g != world || err != nil {
				t.Errorf("without groups it is not the world: %v", err)
			}
		})
	}
	wg.Wait()
}

// Groups that would not be equal are an error on every rank, before any of them waits for another.
func TestSplitNeedsGroupsOfEqualSize(t *testing.T) {
	for _, world := range append(local.New(6, local.Options{}), comm.Alone{}) {
		for _, groups := range []int{-2, 4, 12} {
			if g, err := comm.Split(world, groups); g != nil || err == nil ||
				!strings.Contains(err.Error(), "cannot be divided") {
				t.Errorf("%d ranks in %d groups: %v", world.Size(), groups, err)
			}
		}
	}
}

// A rank alone exchanges nothing, whether it gives lists or not.
func TestARankAloneNeedsNoLists(t *testing.T) {
	x := comm.Alone{}.NewExchange("x", nil, nil)
	x.Start(1)
	if err := x.Wait(); err != nil || x.From(0) != nil {
		t.Errorf("%v, %v", x.From(0), err)
	}
}
