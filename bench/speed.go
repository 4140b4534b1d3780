package bench

import (
	"context"

	"anneal/config"
	"anneal/device"
	"anneal/plan"
)

// speedSteps returns how many steps of a configuration Speed measures: four, or one if a step takes seconds on a CPU.
func speedSteps(cfg *config.Config) (int, error) {
	p, err := plan.For(cfg, device.Null{})
	if err != nil {
		return 0, err
	}
	if p.FLOPsPerToken*float64(cfg.Train.BatchTokens) > 4e11 {
		return 1, nil
	}
	return 4, nil
}

// longestPeriod is the number of steps from which on work of one step in so many takes too little to be measured.
const longestPeriod = 20

// periodOf returns after how many steps an optimizer repeats the work that it does not do in every step.
func periodOf(o config.Optimizer) int {
	n := 1
	switch o.Name {
	case "sophia":
		n = o.HessianEvery
	case "soap":
		n = o.BasisEvery
	}
	if n > longestPeriod {
		return 1
	}
	return n
}

// Speed makes whole steps of a configuration, without ramps and warmups of their size, on random tokens, and returns
// the tokens per second of the median step, or the mean ones of a period of the optimizer. The ranks of the
// configuration are goroutines of this process.
func Speed(ctx context.Context, cfg *config.Config) (float64, error) {
	cfg = cfg.Clone()
	cfg.Train.BatchRamp, cfg.Train.LengthWarmup = config.BatchRamp{}, config.LengthWarmup{}
	ranks := cfg.Parallel.Ranks
	threads, err := threadsOfRank(cfg, ranks)
	if err != nil {
		return 0, err
	}
	steps, err := speedSteps(cfg)
	if err != nil {
		return 0, err
	}
	period := periodOf(cfg.Optimizer)
	steps = (steps + period - 1) / period * period
	m, err := inProcess(ctx, cfg, &RanksCase{Ranks: ranks, Threads: threads, steps: steps})
	if err != nil {
		return 0, err
	}
	ms := medianOf(m.Times)
	if period > 1 {
		ms = meanOf(m.Times)
	}
	return float64(cfg.Train.BatchTokens) / ms * 1e3, nil
}
