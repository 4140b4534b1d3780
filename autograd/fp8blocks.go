package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Blocks gives the size of the blocks of FP8 operands. Each block has its own scale, instead of one scale per tensor.
// A block has Long numbers in the direction that a product sums over; in weights it also spans Wide rows.
//
//	y  = q(x)·q(w)ᵀ         blocks of x [1, Long], of w [Wide, Long]
//	dx = q(dy)·q(w)         of dy [1, Long], of w [Long, Wide]
//	dw += q(dy)ᵀ·q(x)       of dy [Long, 1], of x [Long, 1]
//
// q rounds to E4M3 everywhere: a block of gradients needs less range than a tensor. The scales are powers of two, so
// that BF16 holds q(x) with its scale exactly, and the products are those of hardware that multiplies sums of blocks
// by their scales. Operands are quantised again for each product.
type Blocks struct{ Long, Wide int }

// blocked returns x quantised in blocks, in temporary memory.
func (t *Tape) blocked(x *tensor.Tensor, rows, cols int) *tensor.Tensor {
	q := t.ref(t.temp.New(tensor.BF16, x.Shape()...))
	t.Device.QuantizeBlocks(q, x, rows, cols)
	return q
}

// forwardBlocks writes x·wᵀ plus the bias to dst, or adds it.
func (t *Tape) forwardBlocks(dst, x *tensor.Tensor, w *Param, add bool) {
	mark, refs, b := t.temp.Mark(), t.tensorN, w.FP8.Blocks
	t.Device.MatMul(dst, t.blocked(x, 1, b.Long), t.blocked(&w.Value, b.Wide, b.Long), device.NT, device.MatMulOptions{
		Operand: tensor.BF16, Accumulate: add, Bias: t.biasOf(w),
	})
	t.temp.Release(mark)
	t.tensorN = refs
}

// backwardBlocks adds the gradients of x·wᵀ to those of v, whose value is x, and of w.
func (t *Tape) backwardBlocks(v *Var, x *tensor.Tensor, w *Param, dy *tensor.Tensor) {
	dx, add := t.gradOf(v)
	mark, refs, b := t.temp.Mark(), t.tensorN, w.FP8.Blocks
	t.Device.MatMul(&w.Grad, t.blocked(dy, b.Long, 1), t.blocked(x, b.Long, 1), device.TN, device.MatMulOptions{
		Operand: tensor.BF16, Accumulate: w.written,
	})
	w.written = true
	t.temp.Release(mark)
	t.tensorN = refs
	t.Device.MatMul(dx, t.blocked(dy, 1, b.Long), t.blocked(&w.Value, b.Long, b.Wide), device.NN, device.MatMulOptions{
		Operand: tensor.BF16, Accumulate: add,
	})
	t.temp.Release(mark)
	t.tensorN = refs
}
