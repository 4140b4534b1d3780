package optim

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Masters64 keeps FP64 master weights beside those in FP32 with which a model computes (master copies in a wider
// format: Micikevicius et al. 2017, arXiv 1710.03740 §3.1). The other rule updates the masters, with gradients and
// moments in FP64, and the weights are the masters rounded to nearest:
//
//	M ← update(M, g);  w ← FP32(M)
//
// An update below half of the last place of w, 6·10⁻⁸ of it, is lost in FP32 but adds up in the masters. State: 8
// bytes per parameter for M, and the rule's state at twice its size: 24 bytes with AdamW. Scratch: 8 bytes per element
// of the largest parameter. The kernels are portable: an update takes about 7 times as long as in FP32. Default: off.
// For the last steps of a long decay, and to learn whether rounding of weights matters in a run. Not for common rates:
// an update of 10⁻³ of a weight keeps 13 bits in FP32.
type Masters64 struct {
	Optimizer
	wide nn.Param // the parameter as the rule sees it
}

// Layout implements Optimizer: the masters, then the rule's state of them.
func (o *Masters64) Layout(a *tensor.Arena, p *nn.Param) State {
	master := a.New(tensor.F64, p.Value.Shape()...)
	return append(State{{"master", master, 1}}, o.Optimizer.Layout(a, o.of(p, master))...)
}

// of returns p with master as its value, valid until the next call.
func (o *Masters64) of(p *nn.Param, master tensor.Tensor) *nn.Param {
	o.wide = *p
	o.wide.Value = master
	return &o.wide
}

// Update implements Optimizer. The masters begin as the weights.
func (o *Masters64) Update(d device.Device, p *nn.Param, state State, s Step, scratch *tensor.Arena) {
	master := &state[0].Tensor
	if s.T == 1 {
		d.Copy(master, &p.Value)
	}
	mark := scratch.Mark()
	wide := o.of(p, *master)
	wide.Grad = scratch.New(tensor.F64, p.Grad.Shape()...)
	d.Copy(&wide.Grad, &p.Grad)
	o.Optimizer.Update(d, wide, state[1:], s, scratch)
	d.Copy(&p.Value, master)
	scratch.Release(mark)
}
