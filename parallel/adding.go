package parallel

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Adding holds the parameters whose gradients are computed from zero in separate memory, the room, and then added to
// the gradients before.
type Adding []added

type added struct {
	*nn.Param
	room  tensor.Tensor // for a gradient
	sum   tensor.Tensor // the gradients before, while Grad is the room
	apart bool          // Grad is the room
}

// NewAdding allocates the room for gradients of the chosen parameters, whose gradients must be allocated.
func NewAdding(a *tensor.Arena, params []*nn.Param, chosen func(*nn.Param) bool) (list Adding) {
	for _, p := range params {
		if chosen(p) {
			list = append(list, added{Param: p, room: a.New(p.Grad.DType(), p.Grad.Shape()...)})
		}
	}
	return list
}

// InPieces reports whether the gradient of p is a sum of pieces. Then adding up several micro-batches in place gives
// other bits than the sum of their gradients.
func InPieces(p *nn.Param) bool { return !p.OnePass() }

// Begin redirects gradients to the room.
func (l Adding) Begin() {
	for i := range l {
		if p := &l[i]; p.HasGrad() {
			p.sum, p.apart = p.Grad, true
			p.Redirect(p.room, false)
		}
	}
}

// End adds the gradients in the room to those before.
func (l Adding) End(dev device.Device) {
	for i := range l {
		p := &l[i]
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
