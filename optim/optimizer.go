package optim

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// An Optimizer is an update rule with its constants. Those that treat all elements alike (SGD, Adam, AdamW, Adam8bit,
// Lion, AdEMAMix, Sophia) update a piece of a parameter (nn.Param.Piece) as they would update it in the whole; Muon and
// Adafactor need whole parts.
type Optimizer interface {
	// Layout allocates in a the state that the optimizer keeps of p between updates. It starts as zeros.
	Layout(a *tensor.Arena, p *nn.Param) State
	// Update applies one update to p.Value, from the gradient s.Scale·p.Grad, and updates the state. It computes only
	// on d, so that device.Null can measure it, and releases all scratch memory that it takes.
	Update(d device.Device, p *nn.Param, state State, s Step, scratch *tensor.Arena)
}

// Step holds the inputs of an update beside the gradient.
type Step struct {
	T     int     // number of the update, from 1
	LR    float64 // after schedule, group and LRScale
	Decay float64 // after group and DecayScale; decoupled decay, w ← w·(1 − LR·Decay), comes first
	Scale float64 // of the gradient: 1/tokens, the clip coefficient, the inverse of a loss scale
	// Cautious decays only where the update and the weight agree in sign, update·w ≥ 0 (Chen et al. 2025, arXiv
	// 2510.12402): decay does not pull against the loss. For decoupled decay only.
	Cautious bool
	// EpsScale multiplies the ε of Adam and its relatives; 0 means 1.
	EpsScale float64
	// Momentum, unless 0, replaces the momentum of Muon and SGD in this update.
	Momentum float64
}

// eps is an optimizer's ε in this update.
func (s Step) eps(eps float64) float64 {
	if s.EpsScale == 0 {
		return eps
	}
	return eps * s.EpsScale
}

// State lists the named tensors that an optimizer keeps of one parameter, in the order that its Update expects.
type State []Entry

// Entry is one tensor of a State. Checkpoints append its name to the parameter's.
type Entry struct {
	Name string
	tensor.Tensor
	// Every is the number of consecutive elements of the parameter that one element of the tensor describes; 0 if it
	// describes a part of the parameter as a whole.
	Every int
}

// Bytes returns the size of the state.
func (s State) Bytes() int {
	n := 0
	for i := range s {
		n += s[i].Tensor.Bytes()
	}
	return n
}

// Measure returns the bytes of the state of all parameters, and of the scratch memory of one update. It runs the
// optimizer's own code on a device that does not compute, so the figures are exact.
func Measure(o Optimizer, params []*nn.Param) (state, scratch int) {
	a, b := tensor.NewMeasure("optimizer state"), tensor.NewMeasure("scratch")
	for _, p := range params {
		s := o.Layout(a, p)
		o.Update(device.Null{}, p, s, Step{T: 1, LR: 1, Scale: 1}, b)
	}
	return a.Peak(), b.Peak()
}

// wide returns the dtype of state tensors: F32, or F64 in the reference mode, whatever the dtype of the weights.
func wide(p *nn.Param) tensor.DType {
	if p.Value.DType() == tensor.F64 {
		return tensor.F64
	}
	return tensor.F32
}

// like returns an entry with the parameter's shape.
func like(a *tensor.Arena, name string, p *nn.Param) Entry {
	return Entry{name, a.New(wide(p), p.Value.Shape()...), 1}
}
