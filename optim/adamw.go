package optim

import (
	"iter"
	"math"

	"anneal/device"
	"anneal/tensor"
)

// AdamW is Adam with decoupled weight decay (Loshchilov & Hutter 2017, arXiv 1711.05101):
//
//	m ← β1·m + (1−β1)·g;  v ← β2·v + (1−β2)·g²
//	w ← w·(1 − lr·λ) − lr · m̂ / (√v̂ + ε),  m̂ = m/(1−β1ᵗ), v̂ = v/(1−β2ᵗ)
//
// State: 8 bytes per parameter. Defaults for language models: β = (0.9, 0.95), ε = 1e-8, λ = 0.1 on matrices. Not the
// best choice where memory is scarce: Lion keeps half of its state, Adafactor almost none.
type AdamW struct {
	Beta1, Beta2, Eps float64
}

// Moments is the state of one parameter: running means of the gradient and of its square, of the parameter's shape.
type Moments struct{ M, V tensor.Tensor }

// NewMoments allocates zero moments for a parameter.
func NewMoments(a *tensor.Arena, p *tensor.Tensor) Moments {
	return Moments{M: a.New(p.DType(), p.Shape()...), V: a.New(p.DType(), p.Shape()...)}
}

// Named yields the tensors of the state under the names that checkpoints give them.
func (s *Moments) Named() iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		_ = yield("m", &s.M) && yield("v", &s.V)
	}
}

// Step makes update number t (from 1) at rate lr with the given decay. The gradient used is scale·g.
func (o AdamW) Step(d device.Device, p, g *tensor.Tensor, s *Moments, t int, lr, decay, scale float64) {
	d.AdamW(p, g, &s.M, &s.V, device.AdamW{
		LR: lr, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, Decay: decay, Scale: scale,
		Correct1: 1 / (1 - math.Pow(o.Beta1, float64(t))),
		Correct2: 1 / (1 - math.Pow(o.Beta2, float64(t))),
	})
}
