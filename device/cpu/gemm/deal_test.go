package gemm

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Every task is dealt once, for any number of workers of any speed, and a single worker changes columns as rarely as
// possible.
func TestEveryTaskIsDealtOnce(t *testing.T) {
	var d deal
	for _, c := range []struct{ down, across, workers int }{
		{1, 1, 1}, {5, 1, 3}, {1, 7, 2}, {9, 4, 1}, {3, 5, 4}, {40, 2, 3}, {2, 30, 8},
	} {
		d.reset(c.down, c.across)
		taken := make([]atomic.Int32, c.down*c.across)
		left := atomic.Int64{}
		left.Store(int64(len(taken)))
		changes := atomic.Int32{}
		var wg sync.WaitGroup
		for range c.workers {
			wg.Go(func() {
				column := -1
				for left.Add(-1) >= 0 {
					at, row, ok := d.take(column)
					if !ok {
						t.Errorf("%+v: no task is left, want one", c)
						return
					}
					if at != column {
						changes.Add(1)
					}
					column = at
					taken[at*c.down+row].Add(1)
				}
			})
		}
		wg.Wait()
		if _, _, ok := d.take(-1); ok {
			t.Errorf("%+v: there is a task more", c)
		}
		for i := range taken {
			if n := taken[i].Load(); n != 1 {
				t.Errorf("%+v: task %d in column %d was dealt %d times", c, i%c.down, i/c.down, n)
			}
		}
		if c.workers == 1 && changes.Load() != int32(c.across) {
			t.Errorf("%+v: one worker begins a column %d times, want %d", c, changes.Load(), c.across)
		}
	}
}
