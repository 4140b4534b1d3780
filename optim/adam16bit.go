package optim

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Adam16bit keeps the moments of Adam or AdamW in BF16, rounded stochastically (Gupta et al. 2015, arXiv 1502.02551):
//
//	m ← SR(β1·m + (1−β1)·g);  v ← SR(β2·v + (1−β2)·g²)
//
// SR(x) is the BF16 above x or the one below, at random, so that its mean is x. A mean of squares with β2 = 0.999 moves
// by up to a thousandth in a step, a quarter of BF16's last place: rounded to nearest it would stand still, rounded
// stochastically it moves in a quarter of the steps. BF16 has the exponents of FP32, so no moment becomes 0 that FP32
// would keep. The update uses the moments before they are rounded. The random numbers are Philox of (seed, Moment,
// update, parameter, element), so they depend on neither threads nor ranks.
//
// State: 4 bytes per parameter, half of AdamW's. A parameter is updated in stretches, which need 8 MiB of scratch
// memory. Rounding adds noise of 2⁻⁹ per step to the moments, which accumulates in v to 2⁻⁹/√(2·(1−β2)): 0.6 % at β2 =
// 0.95, 4 % at 0.999. Off by default. Not where AdamW's state fits: it is slower. If memory is scarcer still, use
// Adam8bit.
type Adam16bit struct {
	AdamW
	Coupled bool // Adam: decay is part of the gradient
	Seed    uint64

	value, grad, m, v, narrowM, narrowV tensor.Tensor // of a stretch
}

// wideStretch is the number of elements that are updated at a time.
const wideStretch = 64 * device.Stretch

// Layout implements Optimizer: running means of the gradient and of its square.
func (*Adam16bit) Layout(a *tensor.Arena, p *nn.Param) State {
	shape := p.Value.Shape()
	return State{{"m", a.New(tensor.BF16, shape...), 1}, {"v", a.New(tensor.BF16, shape...), 1}}
}

// Update implements Optimizer.
func (o *Adam16bit) Update(d device.Device, p *nn.Param, state State, s Step, scratch *tensor.Arena) {
	mark, n, c := scratch.Mark(), p.Value.Len(), o.constants(s)
	c.Coupled = o.Coupled
	rng := tensor.NewRNG(o.Seed, tensor.PurposeMoment, uint32(s.T))
	for from := 0; from < n; from += wideStretch {
		to := min(from+wideStretch, n)
		o.value, o.grad = stretch(&p.Value, from, to), stretch(&p.Grad, from, to)
		o.narrowM, o.narrowV = stretch(&state[0].Tensor, from, to), stretch(&state[1].Tensor, from, to)
		o.m, o.v = scratch.New(tensor.F32, to-from), scratch.New(tensor.F32, to-from)
		d.Copy(&o.m, &o.narrowM)
		d.Copy(&o.v, &o.narrowV)
		d.AdamW(&o.value, &o.grad, &o.m, &o.v, c)
		at := uint64(p.Number)<<40 + uint64(p.First+from)/8
		d.RoundStochastic(&o.narrowM, &o.m, rng, at)
		d.RoundStochastic(&o.narrowV, &o.v, rng, at+1<<39)
		scratch.Release(mark)
	}
}

// stretch returns elements [from, to) of x.
func stretch(x *tensor.Tensor, from, to int) tensor.Tensor {
	flat := x.Reshape(x.Len())
	return flat.Slice(from, to)
}
