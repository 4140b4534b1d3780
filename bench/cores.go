package bench

import (
	"context"
	"time"

	"anneal/dataset"
	"anneal/device/cpu"
	"anneal/device/cpu/pool"
	"anneal/train"
)

// CoresResult says how a training step would scale to more cores than the machine has.
type CoresResult struct {
	Shape     string      `json:"shape"`
	Precision string      `json:"precision"`
	Tier      string      `json:"tier"`
	Tokens    int         `json:"tokens_per_step"`
	Cases     []CoresCase `json:"cases"`
}

// A CoresCase holds the times of a step on a number of cores, in milliseconds, simulated from the times of its tasks.
type CoresCase struct {
	Threads    int     `json:"threads"`
	StepMs     float64 `json:"step_ms"`
	Speedup    float64 `json:"speedup"`     // over one core
	Efficiency float64 `json:"efficiency"`  // Speedup / Threads
	WorkMs     float64 `json:"work_ms"`     // an even share of all tasks
	WaitMs     float64 `json:"wait_ms"`     // waiting beyond it for the slowest core
	HandingMs  float64 `json:"handing_ms"`  // to hand work to cores and to learn that it is done
	AloneMs    float64 `json:"alone_ms"`    // work of one core while the others have nothing to do
	Jobs       int     `json:"jobs"`        // kernels that are shared
	Tasks      int     `json:"tasks"`       // of them all
	WorkOfOne  float64 `json:"work_of_one"` // time of all tasks over that on one core: the cost of sharing
}

// Cores simulates training steps on each number of cores, the first of which must be one, and calls begin before each.
// It measures each for o.Seconds and at least four steps.
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
