package claims

import (
	"anneal/config"
	"anneal/model"
	"anneal/plan"
	"anneal/precision"
	"anneal/train"
)

// card is the memory of an A100 or H100 of 80 GB, in bytes, as the plan of a run counts it.
const card = 80 << 30

// A planned is a configuration with its forecast. It is not trained.
type planned struct {
	*plan.Plan
	cfg *config.Config
}

// seven is the shape of LLaMA 2 7B, for plans with their own optimizer or schedule.
var seven = []string{
	"model.layers=32", "model.dim=4096", "model.heads=32", "model.ffn=11008", "model.context=4096",
	"model.vocab=32000", "model.tie_embeddings=false", "train.micro_batch=1",
}

// planOf plans a recipe with overrides, or overrides alone, on devices with unknown properties. It needs no data.
func planOf(recipe string, overrides ...string) (*planned, error) {
	cfg, err := config.Sources{Recipe: recipe, Overrides: overrides, Planning: true}.Load()
	if err != nil {
		return nil, err
	}
	p, err := plan.For(cfg, train.AbsentDevice("cuda"))
	return &planned{p, cfg}, err
}

// onCards plans a recipe on devices of 80 GB; if it does not fit, on the smallest number of devices that is enough.
func onCards(recipe string, overrides ...string) (*planned, *plan.Foresight, error) {
	p, err := planOf(recipe, overrides...)
	if err != nil {
		return nil, nil, err
	}
	f := &plan.Foresight{Memory: p.Memory, Ranks: p.Ranks}
	f.Within(p.cfg, card)
	return p, f, nil
}

// each returns a part of the memory in bytes per parameter.
func (p *planned) each(part string) float64 {
	return float64(p.Memory.Bytes(part)) / float64(p.Parameters)
}

// state returns a rank's bytes of weights, gradients and optimizer state.
func (p *planned) state() (sum float64) {
	for _, part := range []string{train.Parameters, train.Gradients, train.OptimizerState} {
		sum += float64(p.Memory.Bytes(part))
	}
	return sum
}

// activations returns the bytes that a rank keeps of a micro-batch for its backward pass.
func (p *planned) activations() float64 { return float64(p.Memory.Bytes(train.Activations)) }

// recomputed returns the operations of recomputation as a share of forward and backward.
func (p *planned) recomputed() (float64, error) {
	f, err := train.MeasureRun(p.cfg, train.AbsentDevice("cuda"))
	if err != nil {
		return 0, err
	}
	m := model.Outline(f.Model, precision.Policy{})
	n := f.Model.Context
	return m.RecomputedFLOPsPerToken(n) / m.FLOPsPerToken(n), nil
}

const gigabyte = 1e9
