package autograd

import "anneal/tensor"

// Rounded is weights rounded to the operands' format, by parameter. Products of a forward pass round their operands in any case:
// to read copies that are rounded already gives the same bits, for half of the bytes. A tape that generates token by
// token, which costs little more than reading the weights, has them; for training they would have to follow every update.
type Rounded map[*Param]*tensor.Tensor

// operand returns what a product of the forward pass reads of w.
func (t *Tape) operand(w *Param) *tensor.Tensor {
	if r := t.Rounded[w]; r != nil {
		return r
	}
	return &w.Value
}
