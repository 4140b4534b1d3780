package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"anneal/comm"
	"anneal/comm/local"
	"anneal/config"
	"anneal/sinks"
)

// A run on several ranks is the same session on each of them: every rank has its own device, loader and trainer. Ranks
// are the processes that a launcher started, or goroutines of this process, which divide its threads among them.

// beginning starts or resumes a run on one rank.
type beginning func(context.Context, Options) (*Result, error)

var (
	errNoConfig = errors.New("there is no configuration\n  make one with config.Load")
	errNoDir    = errors.New("there is no directory for the run\n  name one in Options.Dir")
)

// onRanks makes a run on the ranks of o.World or, without it, on as many goroutines as its configuration has ranks.
func onRanks(ctx context.Context, o Options, cfg *config.Config, begin beginning) (*Result, error) {
	switch {
	case cfg == nil:
		return nil, errNoConfig
	case o.Dir == "":
		return nil, errNoDir
	}
	o.begun, o.kept = time.Now(), &sinks.Kept{}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	switch n := cfg.Parallel.Ranks; {
	case o.World != nil && o.World.Size() > 1:
		o.late = func(func()) {} // the process ends
		return onRank(ctx, o, begin)
	case n > 1:
		return onGoroutines(ctx, o, cfg, begin)
	}
	o.World = comm.Alone{}
	return survive(ctx, o, begin)
}

// onGoroutines makes a run on ranks of this process. It returns the leader's result, or the error of the rank that
// knows the cause.
func onGoroutines(ctx context.Context, o Options, cfg *config.Config, begin beginning) (*Result, error) {
	n := cfg.Parallel.Ranks
	threads, err := shareThreads(n, cmp.Or(o.Threads, cfg.Threads))
	if err != nil {
		return nil, err
	}
	ends := make(chan end, n)
	var late remains
	for rank, world := range local.New(n, local.Options{Timeout: Timeout(cfg)}) {
		mine := o
		mine.World, mine.Threads, mine.late = world, threads[rank], late.add
		if o.Config != nil && rank > 0 {
			mine.Config = o.Config.Clone()
		}
		go func() {
			r, err := onRank(ctx, mine, begin)
			ends <- end{rank, r, err}
		}()
	}
	r, all, err := await(ends, n)
	if all {
		late.close()
	}
	return r, err
}

// remains holds what failed ranks have left open, because other ranks may still read it.
type remains struct {
	mu   sync.Mutex
	list []func()
}

func (r *remains) add(closing func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, closing)
}

func (r *remains) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, closing := range r.list {
		closing()
	}
}

// end is the outcome of a rank.
type end struct {
	rank   int
	result *Result
	err    error
}

// rankPatience is how long a failed run waits for ranks that do not answer.
const rankPatience = 2 * time.Second

// await waits for n ranks. Once one has failed, it waits for the others only for a limited time. It reports whether
// all have ended.
func await(ends <-chan end, n int) (r *Result, all bool, err error) {
	var best end
	var late <-chan time.Time
	for range n {
		select {
		case e := <-ends:
			if e.rank == 0 {
				r = e.result
			}
			if e.err == nil {
				continue
			}
			if best.err == nil || knows(e.err) > knows(best.err) ||
				knows(e.err) == knows(best.err) && e.rank < best.rank {
				best = e
			}
			if late == nil {
				late = time.After(rankPatience)
			}
		case <-late:
			return nil, false, best.err
		}
	}
	if best.err != nil {
		return nil, true, best.err
	}
	return r, true, nil
}

// knows grades an error by how much it says about the cause. A rank's own error says the most.
func knows(err error) int {
	switch {
	case ToldElsewhere(err):
		return 0
	case isLost(err):
		return 1
	}
	return 2
}

// CheckRanks returns an error unless this process has a thread for each rank of a run. threads overrides the
// configuration's number unless it is 0.
func CheckRanks(cfg *config.Config, threads int) error {
	if cfg.Parallel.Ranks == 1 {
		return nil
	}
	_, err := shareThreads(cfg.Parallel.Ranks, cmp.Or(threads, cfg.Threads))
	return err
}

// shareThreads divides threads among ranks; 0 stands for all threads of this process.
func shareThreads(ranks, threads int) ([]int, error) {
	given := threads > 0
	if !given {
		threads = runtime.GOMAXPROCS(0)
	}
	if ranks > threads {
		what := fmt.Sprintf("this process may use %d cores", threads)
		if given {
			what = fmt.Sprintf("threads = %d", threads)
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

// Timeout is how long a rank waits for another.
func Timeout(cfg *config.Config) time.Duration {
	return time.Duration(cfg.Parallel.Timeout * float64(time.Minute))
}

// onRank makes a run on one rank of several. If this rank fails, the others end, too.
func onRank(ctx context.Context, o Options, begin beginning) (r *Result, err error) {
	g := o.group()
	if !g.leads() {
		o.Warn, o.OnProgress, o.Notes = func(string) {}, nil, nil
	}
	defer func() { err = g.failed(err, recover()) }()
	return survive(ctx, o, begin)
}

// failed handles a rank that returns an error or panics: unless all ranks know of the error, it ends the group with
// it.
func (g group) failed(err error, panicked any) error {
	if panicked != nil {
		err = &PanicError{Rank: g.Rank(), Host: hostname(), Value: panicked, Stack: debug.Stack()}
	}
	if lost := (*comm.LostError)(nil); errors.As(err, &lost) && lost.For == 0 && lost.Rank != g.Rank() {
		return told(lost, err) // the rank that ended the group says why
	}
	if err != nil && !Agreed(err) {
		g.abort(err)
	}
	return err
}

// end closes a session that ends with err or a panic. When a rank fails, other ranks may still read its memory, which
// stays until they have ended, too.
func (s *session) end(err *error) {
	if s.world.alone() {
		s.close()
		return
	}
	*err = s.lostEarly(s.world.failed(*err, recover()))
	if broken := (*PanicError)(nil); errors.As(*err, &broken) && broken.Step == 0 {
		broken.Step = s.look.step()
	}
	s.closeFiles()
	if *err != nil && (!Agreed(*err) || isLost(*err)) && s.late != nil {
		s.late(s.free)
		return
	}
	if s.trainer != nil { // other ranks may still read its memory
		if lost := s.trainer.Settle(); *err == nil {
			*err = lost
		}
	}
	s.free()
}

// A PanicError is a panic of one rank: a bug in anneal.
type PanicError struct {
	Rank  int
	Host  string
	Step  int // the current step; 0 before the first
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("rank %d (%s): panic in step %d: %v", e.Rank, e.Host, e.Step, e.Value)
}
