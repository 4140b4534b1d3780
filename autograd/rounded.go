package autograd

import "anneal/tensor"

// Rounded maps parameters to copies rounded to the operand format. Products of a forward pass round their operands
// anyway, so rounded copies give the same bits for half of the memory traffic. Generation token by token uses them,
// because it spends most of its time reading weights. Training does not, because the copies would have to follow every
// update.
type Rounded map[*Param]*tensor.Tensor

// operand returns the tensor that a forward product reads for w.
func (t *Tape) operand(w *Param) *tensor.Tensor {
	if r := t.Rounded[w]; r != nil {
		return r
	}
	return &w.Value
}
