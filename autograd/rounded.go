package autograd

import "anneal/tensor"

// Rounded maps parameters to copies rounded to the operand format. Products of a forward pass round their operands
// anyway, so rounded copies give the same bits for half of the memory traffic. Generation token by token, whose time
// is mostly reading the weights, uses them; training does not, because they would have to follow every update.
type Rounded map[*Param]*tensor.Tensor

// operand returns the tensor that a forward product reads for w.
func (t *Tape) operand(w *Param) *tensor.Tensor {
	if r := t.Rounded[w]; r != nil {
		return r
	}
	return &w.Value
}
