package bench

import (
	"context"

	"anneal/config"
)

// speedSteps is how many steps Speed measures.
const speedSteps = 4

// Speed makes steps of a configuration on random tokens, on the ranks that it has, which are goroutines of this
// process, and returns tokens per second by the median step.
func Speed(ctx context.Context, cfg *config.Config) (float64, error) {
	ranks := cfg.Parallel.Ranks
	threads, err := threadsOfRank(cfg, ranks)
	if err != nil {
		return 0, err
	}
	m, err := inProcess(ctx, cfg, &RanksCase{Ranks: ranks, Threads: threads, steps: speedSteps})
	if err != nil {
		return 0, err
	}
	return float64(cfg.Train.BatchTokens) / medianOf(m.Times) * 1e3, nil
}
