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

// Speed makes steps of a configuration on random tokens and returns the tokens per second of the median step. The
// ranks of the configuration are goroutines of this process.
func Speed(ctx context.Context, cfg *config.Config) (float64, error) {
	ranks := cfg.Parallel.Ranks
	threads, err := threadsOfRank(cfg, ranks)
	if err != nil {
		return 0, err
	}
	steps, err := speedSteps(cfg)
	if err != nil {
		return 0, err
	}
	m, err := inProcess(ctx, cfg, &RanksCase{Ranks: ranks, Threads: threads, steps: steps})
	if err != nil {
		return 0, err
	}
	return float64(cfg.Train.BatchTokens) / medianOf(m.Times) * 1e3, nil
}
