package optim

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Adam divides each parameter's running mean gradient by its running root mean square (Kingma & Ba 2014, arXiv
// 1412.6980):
//
//	g ← g + λ·w;  m ← β1·m + (1−β1)·g;  v ← β2·v + (1−β2)·g²
//	w ← w − lr · m̂ / (√v̂ + ε),  m̂ = m/(1−β1ᵗ), v̂ = v/(1−β2ᵗ)
//
// Decay λ is coupled, that is, part of the gradient, so weights with large gradients decay less. State: 8 bytes per
// parameter. Defaults: β = (0.9, 0.95), ε = 1e-8, λ = 0. With decay prefer AdamW, which decays all weights alike.
type Adam struct {
	Beta1, Beta2, Eps float64
}

// Layout implements Optimizer: running means of the gradient and of its square.
func (o Adam) Layout(a *tensor.Arena, p *nn.Param) State { return AdamW(o).Layout(a, p) }

// Update implements Optimizer.
func (o Adam) Update(d device.Device, p *nn.Param, state State, s Step, _ *tensor.Arena) {
	c := AdamW(o).constants(s)
	c.Coupled = true
	d.AdamW(&p.Value, &p.Grad, &state[0].Tensor, &state[1].Tensor, c)
}
