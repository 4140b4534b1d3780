package bench

import (
	"context"
	"time"

	"anneal/dataset"
	"anneal/device/cpu"
	"anneal/device/cpu/pool"
	"anneal/train"
)

// CoresResult says how a training step would share out among more cores than there are.
type CoresResult struct {
	Shape     string      `json:"shape"`
	Precision string      `json:"precision"`
	Tier      string      `json:"tier"`
	Tokens    int         `json:"tokens_per_step"`
	Cases     []CoresCase `json:"cases"`
}

// A CoresCase is a number of cores. Times are milliseconds of a step, simulated from the times of its tasks.
type CoresCase struct {
	Threads    int     `json:"threads"`
	StepMs     float64 `json:"step_ms"`
	Speedup    float64 `json:"speedup"`     // over one core
	Efficiency float64 `json:"efficiency"`  // Speedup / Threads
	WorkMs     float64 `json:"work_ms"`     // an even share of all tasks
	WaitMs     float64 `json:"wait_ms"`     // beyond it, for the core that is through last
	HandingMs  float64 `json:"handing_ms"`  // to tell cores of work and to hear that it is done
	AloneMs    float64 `json:"alone_ms"`    // what one core does while the others have nothing to do
	Jobs       int     `json:"jobs"`        // kernels that are shared
	Tasks      int     `json:"tasks"`       // of them all
	WorkOfOne  float64 `json:"work_of_one"` // all tasks' time over that of one core's: what sharing adds to it
}

// Cores simulates training steps on each number of cores, the first of which is one, and calls begin before each. It
// measures at least four steps for each, and o.Seconds.
func Cores(ctx context.Context, o Options, threads []int, begin func(threads int)) (*CoresResult, error) {
	r := &CoresResult{Shape: o.Shape, Precision: o.Precision}
	var one CoresCase
	for _, n := range threads {
		begin(n)
		c, err := r.simulate(ctx, o, n)
		if err != nil {
			return nil, err
		}
		if one.Threads == 0 {
			one = *c
		}
		total := func(c *CoresCase) float64 { return c.WorkMs*float64(c.Threads) + c.AloneMs }
		c.Speedup = one.StepMs / c.StepMs
		c.Efficiency = c.Speedup / float64(n)
		c.WorkOfOne = total(c) / total(&one)
		r.Cases = append(r.Cases, *c)
	}
	return r, nil
}

// simulate returns a step on n cores.
func (r *CoresResult) simulate(ctx context.Context, o Options, n int) (*CoresCase, error) {
	cfg, err := o.config()
	if err != nil {
		return nil, err
	}
	dev, err := cpu.Simulate(n)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	t, err := train.New(cfg, dev)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	r.Tier, r.Tokens = dev.Kernels(), cfg.Train.BatchTokens
	src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, cfg.Seed)
	var s pool.Simulation
	for begin, steps := time.Now(), 0; steps < 4 || time.Since(begin).Seconds() < o.Seconds; steps++ {
		dev.BeginStep()
		if _, err := t.Step(ctx, src); err != nil {
			return nil, err
		}
		s = dev.EndStep()
	}
	work := s.Work.Seconds() / float64(n)
	return &CoresCase{
		Threads: n, StepMs: 1e3 * s.Total().Seconds(), WorkMs: 1e3 * work, WaitMs: 1e3 * (s.Longest.Seconds() - work),
		HandingMs: 1e3 * s.Handing.Seconds(), AloneMs: 1e3 * s.Outside.Seconds(), Jobs: s.Jobs, Tasks: s.Tasks,
	}, nil
}
