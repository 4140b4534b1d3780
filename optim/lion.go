package optim

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Lion updates by the sign of an interpolated momentum (Chen et al. 2023, arXiv 2302.06675):
//
//	u = sign(β1·m + (1−β1)·g);  w ← w·(1 − lr·λ) − lr·u;  m ← β2·m + (1−β2)·g
//
// State: 4 bytes per parameter, half of AdamW's. Every weight moves by lr, so use a learning rate 3–10 times smaller
// than AdamW's and a decay larger by the same factor. Defaults for language models: β = (0.95, 0.98), lr = 2e-4, λ =
// 0.5. Not for small batches, where the sign is noise.
type Lion struct {
	Beta1, Beta2 float64
}

// Layout implements Optimizer: the momentum.
func (Lion) Layout(a *tensor.Arena, p *nn.Param) State { return State{like(a, "m", p)} }

// Update implements Optimizer.
func (o Lion) Update(d device.Device, p *nn.Param, state State, s Step, _ *tensor.Arena) {
	d.Lion(&p.Value, &p.Grad, &state[0].Tensor, device.Lion{
		LR: s.LR, Beta1: o.Beta1, Beta2: o.Beta2, Decay: s.Decay, Cautious: s.Cautious, Scale: s.Scale,
	})
}
