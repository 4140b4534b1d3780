package optim

import "anneal/nn"

// A Division says how an optimizer's work on a parameter can be divided without changing the results.
type Division int

// The divisions.
const (
	Elements Division = iota // runs of elements, cut at multiples of device.Stretch
	Parts                    // the parts of a fused weight
	Indivisible
)

// Divide returns the division of p: elements, if the optimizer does not say otherwise.
func Divide(o Optimizer, p *nn.Param) Division {
	if d, ok := o.(interface{ Divide(p *nn.Param) Division }); ok {
		return d.Divide(p)
	}
	return Elements
}

// Divide returns Parts for the matrices that Muon orthogonalises.
func (o *Muon) Divide(p *nn.Param) Division {
	if o.Orthogonalises(p) {
		return Parts
	}
	return Elements
}

// Divide returns Parts for matrices whose second moment is factored. All others are whole: their step depends on the
// size of all weights.
func (o *Adafactor) Divide(p *nn.Param) Division {
	if !o.Whole && len(p.Shape) == 2 {
		return Parts
	}
	return Indivisible
}
