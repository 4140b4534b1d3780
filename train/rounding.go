package train

import (
	"fmt"

	"anneal/device"
	"anneal/nn"
	"anneal/optim"
	"anneal/tensor"
)

// Weights in BF16 without FP32 masters (precision bf16_sr). Any optimizer computes the update in FP32, on a copy of
// one parameter in scratch memory, and the result is rounded stochastically (Gupta et al. 2015, arXiv 1502.02551):
//
//	w ← SR(update(w)),  SR(x) = the BF16 above x with probability (x − below)/(above − below), else the one below
//
// Then E[SR(x)] = x: an update of a hundredth of the last place of w takes effect in a hundredth of the steps, while
// rounding to nearest would always lose it. The random numbers are Philox of (seed, Round, update, parameter,
// element).
//
// It saves 2 bytes per parameter, costs one pass over them, and adds noise of half a last place, 2⁻⁹ of a weight, per
// step. Not for long runs at tiny learning rates, where that noise exceeds the updates and FP32 masters are worth
// their memory.

// masterOf returns the parameter that an optimizer sees. This is p itself unless p is stored in less precision than
// its gradient; then it is a parameter in the gradient's format, whose value updateRounded fills.
func masterOf(p *nn.Param) *nn.Param {
	if p.Value.DType() == p.Format() {
		return p
	}
	master := *p
	master.Value = p.Grad // for its shape and format
	return &master
}

// updateRounded updates p, which is stored in BF16.
func (t *Trainer) updateRounded(p *updated, s optim.Step) {
	mark := t.scratch.Mark()
	p.master.Value = t.scratch.New(p.Grad.DType(), p.Value.Shape()...)
	t.dev.Copy(&p.master.Value, &p.Value)
	t.opt.Update(t.dev, p.master, p.state, s, t.scratch)
	rng := tensor.NewRNG(t.cfg.Seed, tensor.PurposeRound, uint32(s.T))
	t.dev.RoundStochastic(&p.Value, &p.master.Value, rng, uint64(p.Number)<<40+uint64(p.First/8))
	t.scratch.Release(mark)
}

// measureUpdates returns the bytes of scratch memory that an update needs: the optimizer's, and the copy of a
// parameter that is updated in another format. It runs the optimizer's own code without memory, once for parameters
// that are alike, because SOAP's takes a tenth of a second for a matrix of 8,192 columns.
func measureUpdates(o optim.Optimizer, list []updated) int {
	scratch, seen := tensor.NewMeasure(""), map[string]bool{}
	for _, p := range list {
		alike := fmt.Sprint(p.Role, p.Value.Shape(), p.Parts, p.Value.DType(), p.Grad.DType(), p.master != p.Param)
		if p.Frozen || seen[alike] {
			continue
		}
		seen[alike] = true
		mark := scratch.Mark()
		if p.master != p.Param {
			scratch.New(p.Grad.DType(), p.Value.Shape()...)
		}
		o.Update(device.Null{}, p.master, p.state, optim.Step{T: 1, LR: 1, Scale: 1}, scratch)
		scratch.Release(mark)
	}
	return scratch.Peak()
}
