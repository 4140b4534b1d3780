package optim

import (
	"math"

	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// ScheduleFree is AdamW without a learning-rate schedule (Defazio et al. 2024, arXiv 2405.15682). It keeps three
// sequences of weights: gradients are taken at y, z makes the steps, and x, the average of z, is the trained model:
//
//	v ← β2·v + (1−β2)·g²;  z ← z − lr·(g/(√v̂ + ε) + λ·y),  g at y, v̂ = v/(1−β2ᵗ)
//	x ← (1−c)·x + c·z,  c = sₜ²/(s₁² + … + sₜ²), sₜ = min(1, t/warmup);  y ← (1−β1)·z + β1·x
//
// The average takes the place of the decay: at any step x is as good as if a schedule had ended there, so the length
// of the run need not be known. The rate s warms up and then stays constant. A parameter's value is y between updates,
// the first entry of its state x.
//
// State: 12 bytes per parameter, 4 more than AdamW. (8 would be enough, with x computed from y and z, but y would not
// survive an evaluation bit for bit.) Defaults: β = (0.9, 0.95), ε = 1e-8, λ = 0.1, lr = 2.5e-3, two to three times
// AdamW's. β1 matters more than in AdamW: long runs want 0.95 or more. Not where a decay is possible anyway: a tuned
// WSD or cosine is about as good, and needs no second set of weights.
type ScheduleFree struct {
	Beta1, Beta2, Eps float64
	Warmup            int // updates
}

// Layout implements Optimizer: x, z, and the running mean of squares.
func (ScheduleFree) Layout(a *tensor.Arena, p *nn.Param) State {
	return State{like(a, "x", p), like(a, "z", p), like(a, "v", p)}
}

// Update implements Optimizer. It overwrites the gradient.
func (o ScheduleFree) Update(d device.Device, p *nn.Param, state State, s Step, _ *tensor.Arena) {
	y, x, z, v := &p.Value, &state[0].Tensor, &state[1].Tensor, &state[2].Tensor
	if s.T == 1 {
		d.Copy(x, y)
		d.Copy(z, y)
	}
	if s.LR == 0 { // averages of equal numbers may round to others
		return
	}
	d.Combine(z, z, y, device.Combination{X: 1, Y: -s.LR * s.Decay})
	step := AdamW{Beta2: o.Beta2, Eps: o.Eps}.constants(s)
	step.Decay = 0
	d.AdamW(z, &p.Grad, &p.Grad, v, step) // with β1 = 0 the first moment is the gradient
	c := o.share(s.T)
	d.Combine(x, x, z, device.Combination{X: 1 - c, Y: c})
	d.Combine(y, x, z, device.Combination{X: o.Beta1, Y: 1 - o.Beta1})
}

// share returns c of update t. The sum of squares of a warmup has a closed form.
func (o ScheduleFree) share(t int) float64 {
	w := float64(max(o.Warmup, 1))
	warm := math.Min(float64(t), w)
	sum := warm*(warm+1)*(2*warm+1)/(6*w*w) + math.Max(float64(t)-w, 0)
	return warm * warm / (w * w) / sum
}
