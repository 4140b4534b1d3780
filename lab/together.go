package lab

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// Together calls do(ctx, 0) … do(ctx, n−1), in this order, at most limit at a time; 0 is as many as there are cores.
// After an error it begins no further call, and cancels the context of running calls. It returns the errors of all
// calls, except those that only report this cancellation.
func Together(ctx context.Context, n, limit int, do func(ctx context.Context, i int) error) error {
	if limit <= 0 {
		limit = runtime.GOMAXPROCS(0)
	}
	under, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	free := make(chan struct{}, limit)
	errs := make([]error, n)
	for i := range n {
		free <- struct{}{}
		if under.Err() != nil {
			break
		}
		wait.Go(func() {
			defer func() { <-free }()
			if errs[i] = do(under, i); errs[i] != nil {
				cancel()
			}
		})
	}
	wait.Wait()
	if ctx.Err() == nil {
		for i, err := range errs {
			if errors.Is(err, context.Canceled) {
				errs[i] = nil
			}
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}
