package optim

import (
	"cmp"

	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// SGD is gradient descent with momentum (Polyak 1964; Nesterov's form by Sutskever et al. 2013). The constants have
// the same meaning as in PyTorch:
//
//	g ← g + λ·w;  m ← μ·m + (1−τ)·g, from m = g;  w ← w − lr·m, or with Nesterov w − lr·(g + μ·m)
//
// Decay λ is coupled, that is, part of the gradient. The learning rate is outside m, so a new rate also scales past
// gradients. State: none without momentum, 4 bytes per parameter with it. Defaults: lr = 0.1, μ = 0. It is a
// baseline, and suits convex problems and many convolutional networks. Transformers train badly with it, because
// their layers need very different rates.
type SGD struct {
	Momentum, Dampening float64 // μ, τ
	Nesterov            bool    // with τ = 0
}

// Layout implements Optimizer: the momentum, if there is any.
func (o SGD) Layout(a *tensor.Arena, p *nn.Param) State {
	if o.Momentum == 0 {
		return nil
	}
	return State{like(a, "m", p)}
}

// Update implements Optimizer.
func (o SGD) Update(d device.Device, p *nn.Param, state State, s Step, _ *tensor.Arena) {
	if o.Momentum == 0 {
		d.Descend(&p.Value, &p.Grad, device.Descend{LR: s.LR * s.Scale, Shrink: s.LR * s.Decay})
		return
	}
	keep := 1 - o.Dampening
	if s.T == 1 {
		keep = 1
	}
	d.Momentum(&p.Value, &p.Grad, &state[0].Tensor, device.Momentum{
		LR: s.LR, Beta: cmp.Or(s.Momentum, o.Momentum), Keep: keep, Decay: s.Decay, Scale: s.Scale,
		Nesterov: o.Nesterov,
	})
}
