package optim

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// EWC keeps weights near their values after an earlier task, the more the more important they were for it (elastic
// weight consolidation: Kirkpatrick et al. 2017, arXiv 1612.00796). The loss gets the penalty λ/2 · Σ F·(w − start)².
// After every update by the other rule, EWC makes an implicit gradient step of the penalty, which is stable as long as
// lr·λ·F is a finite number (the configuration limits λ):
//
//	w ← (w + lr·λ·F·start) / (1 + lr·λ·F)
//
// So the penalty is decoupled from the gradient, like decoupled weight decay: the rule neither clips nor divides it. F
// is an estimate of the diagonal of the Fisher information, with a mean of 1: λ has the scale of a weight decay.
//
// State: 8 bytes per parameter beside the rule's. It helps little where the first task was learnt to the end, since F
// vanishes there; take F from an earlier checkpoint. Replaying some of the old data does far more (docs/lab.md).
type EWC struct {
	Optimizer
	Strength float64 // λ
}

// The names of EWC's state of a parameter.
const (
	EWCStart      = "ewc_start"
	EWCImportance = "ewc_importance"
)

// Layout implements Optimizer: the rule's state, the weights of the earlier task, and their importance.
func (o EWC) Layout(a *tensor.Arena, p *nn.Param) State {
	return append(o.Optimizer.Layout(a, p), like(a, EWCStart, p), like(a, EWCImportance, p))
}

// Update implements Optimizer.
func (o EWC) Update(d device.Device, p *nn.Param, state State, s Step, scratch *tensor.Arena) {
	n := len(state) - 2
	o.Optimizer.Update(d, p, state[:n], s, scratch)
	d.Anchor(&p.Value, &state[n].Tensor, &state[n+1].Tensor, s.LR*o.Strength)
}
