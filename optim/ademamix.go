package optim

import (
	"math"

	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// AdEMAMix adds a second, much slower running mean of the gradient to Adam (Pagliardini et al. 2024, arXiv
// 2409.03137):
//
//	m1 ← β1·m1 + (1−β1)·g;  m2 ← β3·m2 + (1−β3)·g;  v ← β2·v + (1−β2)·g²
//	w ← w·(1 − lr·λ) − lr · (m̂1 + α·m2) / (√v̂ + ε)
//
// Over the first Ramp updates α rises from 0 linearly, and β3 rises from β1 so that its half-life is linear. Without
// the ramp the slow mean would start as a multiple of a few gradients. State: 12 bytes per parameter. Defaults: β =
// (0.9, 0.999, 0.9999), α = 5, Ramp = the whole run. It relies on gradients from thousands of steps ago: not for short
// runs (below some thousand steps use β3 = 0.999), nor for data that changes in kind during the run.
type AdEMAMix struct {
	Beta1, Beta2, Beta3, Alpha, Eps float64
	Ramp                            int // updates; 0 for none
}

// Layout implements Optimizer: the fast and the slow mean of the gradient, and the mean of its square.
func (AdEMAMix) Layout(a *tensor.Arena, p *nn.Param) State {
	return State{like(a, "m1", p), like(a, "m2", p), like(a, "v", p)}
}

// Update implements Optimizer.
func (o AdEMAMix) Update(d device.Device, p *nn.Param, state State, s Step, _ *tensor.Arena) {
	alpha, beta3 := o.scheduled(s.T)
	d.AdEMAMix(&p.Value, &p.Grad, &state[0].Tensor, &state[1].Tensor, &state[2].Tensor, device.AdEMAMix{
		LR: s.LR, Beta1: o.Beta1, Beta2: o.Beta2, Beta3: beta3, Alpha: alpha, Eps: s.eps(o.Eps),
		Decay: s.Decay, Cautious: s.Cautious, Scale: s.Scale,
		Correct1: 1 / (1 - math.Pow(o.Beta1, float64(s.T))),
		Correct2: 1 / (1 - math.Pow(o.Beta2, float64(s.T))),
	})
}

// scheduled returns α and β3 of update t. The half-life of a mean is ln ½ / ln β, so 1/ln β rises linearly.
func (o AdEMAMix) scheduled(t int) (alpha, beta3 float64) {
	if t >= o.Ramp {
		return o.Alpha, o.Beta3
	}
	x := float64(t) / float64(o.Ramp)
	beta3 = math.Exp(1 / ((1-x)/math.Log(o.Beta1) + x/math.Log(o.Beta3)))
	return x * o.Alpha, min(beta3, o.Beta3)
}
