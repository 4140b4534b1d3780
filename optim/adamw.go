package optim

import (
	"math"

	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// AdamW is Adam with decoupled weight decay (Loshchilov & Hutter 2017, arXiv 1711.05101):
//
//	m ← β1·m + (1−β1)·g;  v ← β2·v + (1−β2)·g²
//	w ← w·(1 − lr·λ) − lr · m̂ / (√v̂ + ε),  m̂ = m/(1−β1ᵗ), v̂ = v/(1−β2ᵗ)
//
// State: 8 bytes per parameter. Defaults for language models: β = (0.9, 0.95), ε = 1e-8, λ = 0.1 on matrices. If
// memory is scarce, Lion needs half of this state and Adafactor almost none.
type AdamW struct {
	Beta1, Beta2, Eps float64
}

// Layout implements Optimizer: running means of the gradient and of its square.
func (AdamW) Layout(a *tensor.Arena, p *nn.Param) State {
	return State{like(a, "m", p), like(a, "v", p)}
}

// Update implements Optimizer.
func (o AdamW) Update(d device.Device, p *nn.Param, state State, s Step, _ *tensor.Arena) {
	d.AdamW(&p.Value, &p.Grad, &state[0].Tensor, &state[1].Tensor, o.constants(s))
}

func (o AdamW) constants(s Step) device.AdamW {
	return device.AdamW{
		LR: s.LR, Beta1: o.Beta1, Beta2: o.Beta2, Eps: s.eps(o.Eps), Decay: s.Decay, Cautious: s.Cautious,
		Scale:    s.Scale,
		Correct1: 1 / (1 - math.Pow(o.Beta1, float64(s.T))),
		Correct2: 1 / (1 - math.Pow(o.Beta2, float64(s.T))),
	}
}
