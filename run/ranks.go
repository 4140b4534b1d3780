package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"anneal/comm"
	"anneal/comm/local"
	"anneal/config"
)

// A run on several ranks is the same session on each of them: every rank has a device, a loader and a trainer of its
// own. Ranks are the processes that a launcher started, or goroutines of this one, which share out its threads.

// beginning starts or resumes a run on one rank.
type beginning func(context.Context, Options) (*Result, error)

// onRanks makes a run on the ranks of o.World, or else on as many goroutines as its configuration says.
func onRanks(ctx context.Context, o Options, cfg *config.Config, begin beginning) (*Result, error) {
	o.begun = time.Now()
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	switch n := cfg.Parallel.Ranks; {
	case o.World != nil && o.World.Size() > 1:
		return onRank(ctx, o, begin)
	case n > 1:
		return onGoroutines(ctx, o, cfg, begin)
	}
	o.World = comm.Alone{}
	return survive(ctx, o, begin)
}

// onGoroutines makes a run on ranks of this process. It returns what the leader has, or the error of the rank that
// knows what went wrong.
func onGoroutines(ctx context.Context, o Options, cfg *config.Config, begin beginning) (*Result, error) {
	n := cfg.Parallel.Ranks
	threads, err := shareThreads(n, cmp.Or(o.Threads, cfg.Threads))
	if err != nil {
		return nil, err
	}
	ends := make(chan end, n)
	for rank, world := range local.New(n, local.Options{Timeout: timeoutOf(cfg)}) {
		mine := o
		mine.World, mine.Threads = world, threads[rank]
		if o.Config != nil && rank > 0 {
			mine.Config = o.Config.Clone()
		}
		go func() {
			r, err := onRank(ctx, mine, begin)
			ends <- end{rank, r, err}
		}()
	}
	return await(ends, n)
}

// end is how a rank ended.
type end struct {
	rank   int
	result *Result
	err    error
}

// rankPatience is how long a run that failed waits for ranks that do not answer.
const rankPatience = 2 * time.Second

// await waits for n ranks, the last of them only for a while once one has failed.
func await(ends <-chan end, n int) (*Result, error) {
	var best end
	var late <-chan time.Time
	for range n {
		select {
		case e := <-ends:
			if e.rank == 0 && e.err == nil {
				best.result = e.result
			}
			if e.err == nil {
				continue
			}
			if best.err == nil || knows(e.err) > knows(best.err) ||
				knows(e.err) == knows(best.err) && e.rank < best.rank {
				best.rank, best.err = e.rank, e.err
			}
			if late == nil {
				late = time.After(rankPatience)
			}
		case <-late:
			return nil, best.err
		}
	}
	if best.err != nil {
		return nil, best.err
	}
	return best.result, nil
}

// knows grades an error by how much it says of what went wrong: most if it is the rank's own.
func knows(err error) int {
	switch {
	case ToldElsewhere(err):
		return 0
	case isLost(err):
		return 1
	}
	return 2
}

// shareThreads shares threads out to ranks; 0 stands for all of this process.
func shareThreads(ranks, threads int) ([]int, error) {
	given := threads > 0
	if !given {
		threads = runtime.GOMAXPROCS(0)
	}
	if ranks > threads {
		what := fmt.Sprintf("this process may use %d cores", threads)
		if given {
			what = fmt.Sprintf("the run has %d threads", threads)
		}
		return nil, config.Problem{
			Key: "parallel.ranks", Message: fmt.Sprintf("parallel.ranks = %d, but %s, and each rank needs one",
				ranks, what),
			Try: fmt.Sprintf("parallel.ranks=%d; threads=%d makes ranks take turns on the cores", threads, ranks),
		}
	}
	list := make([]int, ranks)
	for r := range list {
		list[r] = threads / ranks
		if r < threads%ranks {
			list[r]++
		}
	}
	return list, nil
}

// timeoutOf is how long a rank waits for another.
func timeoutOf(cfg *config.Config) time.Duration {
	return time.Duration(cfg.Parallel.Timeout * float64(time.Minute))
}

// onRank makes a run on one rank of several. If this rank fails, the others end, too.
func onRank(ctx context.Context, o Options, begin beginning) (r *Result, err error) {
	g := group{o.World}
	if !g.leads() {
		o.Warn, o.OnProgress, o.Notes = func(string) {}, nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Rank: g.Rank(), Value: p, Stack: debug.Stack()}
		}
		if lost := (*comm.LostError)(nil); errors.As(err, &lost) && lost.For == 0 && lost.Rank != g.Rank() {
			err = &agreedError{err, true} // the rank that ended the group says why
		}
		if err != nil && !Agreed(err) {
			g.Abort(err)
		}
	}()
	return survive(ctx, o, begin)
}

// A PanicError is a panic of one rank: a mistake in anneal.
type PanicError struct {
	Rank  int
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("rank %d: panic: %v", e.Rank, e.Value) }
