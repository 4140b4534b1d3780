package train

import (
	"fmt"

	"anneal/config"
	"anneal/model"
)

// recomputeLayout returns the recomputation of the layers of a run's model by memory.recompute. For a budget it
// measures what they keep.
func recomputeLayout(cfg *config.Config, c model.Config) (model.Layout, error) {
	const key = "memory.recompute"
	fault := func(err error) error {
		return config.Problem{
			Key: key, Message: fmt.Sprintf("%s = %s: %v", key, cfg.Memory.Recompute, err), At: cfg.Origin(key).Place(),
			Try: "a larger budget, or a smaller train.micro_batch, which does not change the batch size",
		}
	}
	r := cfg.Memory.Recompute
	if !r.NeedsFit() {
		l := r.Layout(cfg.Model.Layers)
		l.Narrow = cfg.Memory.RecomputeInputs == "bf16"
		return l, nil
	}
	policy, err := PolicyOf(cfg)
	if err != nil {
		return model.Layout{}, err
	}
	l, err := r.Fit(c, policy, cfg.Train.MicroBatch, cfg.Model.Context, cfg.Memory.Offload.Has(config.Checkpoints))
	if err != nil {
		return l, fault(err)
	}
	return l, nil
}
