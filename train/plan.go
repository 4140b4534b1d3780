package train

import (
	"anneal/config"
	"anneal/model"
	"anneal/plan"
)

// A Plan predicts the cost of a run.
type Plan struct {
	Parameters    int64
	FLOPsPerToken float64 // forward and backward, in sequences of the whole context
	Memory        plan.Estimate
	Optimizer     plan.Optimizer
	Recompute     model.Layout
}

// PlanOf returns the plan of a valid configuration. The vocabulary must be known. Nothing is allocated.
func PlanOf(cfg *config.Config) (Plan, error) {
	policy, err := policyOf(cfg)
	if err != nil {
		return Plan{}, err
	}
	c := modelConfig(cfg)
	if c.Recompute, err = RecomputeLayout(cfg); err != nil {
		return Plan{}, err
	}
	optimizer, err := measureOptimizer(cfg, c, policy)
	if err != nil {
		return Plan{}, err
	}
	m := model.Outline(c, policy)
	return Plan{
		Parameters: m.Count(), FLOPsPerToken: m.FLOPsPerToken(c.Context), Optimizer: optimizer, Recompute: c.Recompute,
		Memory: plan.Memory(c, policy, cfg.Train.MicroBatch, workers(cfg), optimizer),
	}, nil
}
