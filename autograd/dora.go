package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// An adapter with a Magnitude m [O] multiplies by a weight whose rows have the norms m (DoRA, Liu et al. 2024, arXiv
// 2402.09353):
//
//	y = x·W'ᵀ    W' = m · V / ‖V‖    V = W + Scale·B·A [O, I], its norms ‖V‖ [O] by rows
//
// Gradients treat ‖V‖ as a constant, as in §4.3 of the paper.
//
// Memory: W' or V and the gradient of W', [O, I] each, in temporary memory. Time: the gradient of W' costs as much as
// that of a trained weight, and V is computed three times with O·I·R multiplications each.

// combined returns W + Scale·B·A [O, I] of a weight with an adapter, in memory of the arena.
func (t *Tape) combined(w *Param, arena *tensor.Arena) *tensor.Tensor {
	a := w.Adapter
	v := t.ref(arena.New(t.Types.Stat, w.Value.Shape()...))
	t.Device.Copy(v, &w.Value)
	t.Device.MatMul(v, &a.Up.Value, &a.Down.Value, device.NN, device.MatMulOptions{
		Operand: t.Types.Operand, Scale: a.Scale, Accumulate: true,
	})
	return v
}

// forwardDoRA is linear with a weight whose adapter has magnitudes.
func (t *Tape) forwardDoRA(dst, x *tensor.Tensor, w *Param, add bool) {
	mark := t.temp.Mark()
	v := t.combined(w, t.temp)
	t.Device.WeightNorm(v, &w.Adapter.Magnitude.Value)
	t.Device.MatMul(dst, x, v, device.NT, device.MatMulOptions{
		Operand: t.Types.Operand, Accumulate: add, Bias: t.biasOf(w),
	})
	t.temp.Release(mark)
}

// backwardDoRA adds the gradients of x and of the adapter, from that of the layer's result: dy [N, O].
func (t *Tape) backwardDoRA(x *Var, w *Param, dy *tensor.Tensor) {
	a, multiply := w.Adapter, device.MatMulOptions{Operand: t.Types.Operand}
	mark := t.keep.Mark() // the gradient of x, in temporary memory, outlives W'
	v := t.combined(w, t.keep)
	t.Device.WeightNorm(v, &a.Magnitude.Value)
	t.inputGrad(x, dy, v)
	t.keep.Release(mark)
	in := t.fusedValue(x) // [N, I]; it may allocate memory that must stay
	mark = t.temp.Mark()
	v = t.combined(w, t.temp)
	dv := t.ref(t.temp.New(t.Types.Stat, w.Value.Shape()...))
	t.Device.MatMul(dv, dy, in, device.TN, multiply) // [O, I], of W'
	t.Device.WeightNormGrad(dv, t.sumGrad(a.Magnitude), v, &a.Magnitude.Value)
	multiply.Scale = a.Scale
	multiply.Accumulate = a.Up.written
	t.Device.MatMul(&a.Up.Grad, dv, &a.Down.Value, device.NT, multiply) // [O, R]
	multiply.Accumulate = a.Down.written
	t.Device.MatMul(&a.Down.Grad, &a.Up.Value, dv, device.TN, multiply) // [R, I]
	a.Up.written, a.Down.written = true, true
	t.temp.Release(mark)
}
