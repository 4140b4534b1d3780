package lab

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Calls run at most so many at a time; after an error none begins, and those under way are told.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, all atomic.Int64
		if err := Together(t.Context(), 10, 3, func(context.Context, int) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			all.Add(1)
			return nil
		}); err != nil || all.Load() != 10 || most.Load() != 3 {
			t.Errorf("%d of 10 calls, %d at a time, want 3: %v", all.Load(), most.Load(), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		begun := 0
		err := Together(t.Context(), 10, 2, func(ctx context.Context, i int) error {
			begun = max(begun, i+1)
			if i == 0 {
				<-ctx.Done()
				return ctx.Err()
			}
			return broken
		})
		if !errors.Is(err, broken) || errors.Is(err, context.Canceled) || begun != 2 {
			t.Errorf("%d calls begun, want 2 and only the error of the second: %v", begun, err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Together(ctx, 3, 1, func(context.Context, int) error { t.Error("a call after the end"); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}
