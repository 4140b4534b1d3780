package optim

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// An Optimizer is an update rule with its constants.
type Optimizer interface {
	// Layout lays out in a what the optimizer keeps of p between updates: nothing but zeros before the first.
	Layout(a *tensor.Arena, p *nn.Param) State
	// Update changes p.Value by one update from the gradient s.Scale·p.Grad, and its state with it. It computes on d only,
	// so that it can be measured on device.Null, and leaves scratch as it found it.
	Update(d device.Device, p *nn.Param, state State, s Step, scratch *tensor.Arena)
}

// Step is what an update needs to know beside the gradient.
type Step struct {
	T     int     // number of the update, from 1
	LR    float64 // after schedule, group and LRScale
	Decay float64 // after group and DecayScale; where it is decoupled, w ← w·(1 − LR·Decay) comes first
	Scale float64 // of the gradient: 1/tokens, the clip coefficient, the inverse of a loss scale
	// Cautious decays only where the update and the weight agree in sign, update·w ≥ 0 (Chen et al. 2025, arXiv 2510.12402):
	// where the loss pulls a weight away from zero, decay does not pull against it. For decoupled decay only.
	Cautious bool
}

// State is the named tensors that an optimizer keeps of one parameter, in the order in which its Update expects them.
type State []Entry

// Entry is one tensor of a State under the name that checkpoints give it, after the parameter's.
type Entry struct {
	Name string
	tensor.Tensor
}

// Bytes returns the size of the state.
func (s State) Bytes() int {
	n := 0
	for i := range s {
		n += s[i].Tensor.Bytes()
	}
	return n
}

// Measure returns the bytes of arenas that hold the state of all parameters, and the scratch memory of one update. It runs
// the optimizer's own code on a device that computes nothing, so it cannot drift from the truth.
func Measure(o Optimizer, params []*nn.Param) (state, scratch int) {
	a, b := tensor.NewMeasure("optimizer state"), tensor.NewMeasure("scratch")
	for _, p := range params {
		s := o.Layout(a, p)
		o.Update(device.Null{}, p, s, Step{T: 1, LR: 1, Scale: 1}, b)
	}
	return a.Peak(), b.Peak()
}

// wide returns the format in which states are summed: F32, or F64 in the reference mode, whatever the weights are stored in.
func wide(p *nn.Param) tensor.DType {
	if p.Value.DType() == tensor.F64 {
		return tensor.F64
	}
	return tensor.F32
}

// like returns an entry of the parameter's shape.
func like(a *tensor.Arena, name string, p *nn.Param) Entry {
	return Entry{name, a.New(wide(p), p.Value.Shape()...)}
}
