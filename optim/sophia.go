package optim

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Sophia divides the momentum by an estimate of the curvature of each weight and clips the result (Liu et al. 2023,
// arXiv 2305.14342):
//
//	m ← β1·m + (1−β1)·g;  w ← w·(1 − lr·λ) − lr · sign(m)·min(|m| / (ρ·h), 1)
//	every k updates, after one:  h ← β2·h + (1−β2)·B·ĝ²
//
// ĝ is the gradient of the mean loss of the step's B tokens at the new weights, with labels sampled from the model's
// own predictions. This is the Gauss–Newton–Bartlett estimator, whose mean is the diagonal of the Gauss–Newton
// matrix. (The authors' code keeps h without the factor B and puts B into the denominator, which is the same for
// batches of constant size.) Before the first estimate h is 0 and every step is a pure sign step, so a warmup of at
// least k updates is needed. No step is longer than lr.
//
// State: 8 bytes per parameter. Each estimate costs a forward and a backward pass, 1/k of all work. Defaults: β =
// (0.965, 0.99), ρ = 0.04, k = 10, lr of AdamW or somewhat less, λ = 0.2. The share of unclipped elements, win_rate
// in metrics.jsonl, should be between 0.1 and 0.5: raise ρ if it is lower. A tuned AdamW is nearly as good: the
// factor 2 of the paper compares with an untuned one (arXiv 2509.02046 finds at most 1.4).
type Sophia struct {
	Beta1, Beta2, Rho float64
	Every             int // k

	inside, moved int // since TakeWins
}

// Layout implements Optimizer: the momentum and the curvature.
func (*Sophia) Layout(a *tensor.Arena, p *nn.Param) State {
	return State{like(a, "m", p), like(a, "h", p)}
}

// Update implements Optimizer.
func (o *Sophia) Update(d device.Device, p *nn.Param, state State, s Step, _ *tensor.Arena) {
	o.inside += d.Sophia(&p.Value, &p.Grad, &state[0].Tensor, &state[1].Tensor, device.Sophia{
		LR: s.LR, Beta1: o.Beta1, Rho: o.Rho, Decay: s.Decay, Cautious: s.Cautious, Scale: s.Scale,
	})
	o.moved += p.Value.Len()
}

// Due reports whether the curvature must be estimated after update t.
func (o *Sophia) Due(t int) bool { return t%o.Every == 0 }

// Observe updates the curvature from p.Grad, the gradient of the sum of sampled losses. weight turns the square of
// the gradient into B·ĝ²: 1/B, times the inverse square of a loss scale.
func (o *Sophia) Observe(d device.Device, p *nn.Param, state State, weight float64) {
	d.MeanSquare(&state[1].Tensor, &p.Grad, o.Beta2, (1-o.Beta2)*weight)
}

// TakeWins returns how many elements were not clipped, and how many there were, over the updates since its last call.
func (o *Sophia) TakeWins() (inside, moved int) {
	inside, moved = o.inside, o.moved
	o.inside, o.moved = 0, 0
	return inside, moved
}
