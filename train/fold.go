package train

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// fold is the order in which the gradients of a step's micro-batches are added: from left to right, in F32,
//
//	G = ((g₀ + g₁) + g₂) + …
//
// with each gᵢ made from zero. So the bits of G depend on the micro-batches only, not on who computes which of them.
// Matrices add up in place, which gives the same bits (nn.Param.OnePass). The gradients of all other parameters are
// sums of pieces; from the second micro-batch on they are made in room of their own and then added. A parameter that a
// micro-batch does not reach is left alone.
//
// Memory: 4 bytes per element of the tables and vectors, if a step has several micro-batches. Time: one pass over
// them for each micro-batch but the first.
type fold struct {
	parts []part
}

// part is a parameter whose gradient is a sum of pieces.
type part struct {
	*nn.Param
	room  tensor.Tensor // for the gradient of one micro-batch
	sum   tensor.Tensor // of those before, while Grad is the room
	apart bool          // Grad is the room
}

// layoutFold allocates the room of a fold in a.
func layoutFold(a *tensor.Arena, params []*nn.Param) (f fold) {
	for _, p := range params {
		if !p.OnePass() {
			f.parts = append(f.parts, part{Param: p, room: a.New(p.Grad.DType(), p.Grad.Shape()...)})
		}
	}
	return f
}

// begin makes room for the gradients of a micro-batch.
func (f *fold) begin() {
	for i := range f.parts {
		if p := &f.parts[i]; p.HasGrad() {
			p.sum, p.apart = p.Grad, true
			p.Redirect(p.room, false)
		}
	}
}

// end adds the gradients of the micro-batch to those before.
func (f *fold) end(dev device.Device) {
	for i := range f.parts {
		p := &f.parts[i]
		if !p.apart {
			continue
		}
		if p.HasGrad() {
			dev.Add(&p.sum, &p.Grad)
		}
		p.Redirect(p.sum, true)
		p.apart = false
	}
}
