package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// An Adapter adds to the result of a linear layer whose weight is frozen (LoRA, Hu et al. 2021, arXiv 2106.09685):
//
//	y = x·Wᵀ + Scale·(x·Aᵀ)·Bᵀ    x [N, I], A [R, I], B [O, R]
//
// Memory: A and B with their gradients and optimizer state, and 2·N·R elements of temporary memory. Backward computes
// the products with A again, which costs R/O of the layer.
type Adapter struct {
	Down, Up  *Param // A, B
	Scale     float64
	Magnitude *Param // m [O]; nil without DoRA (dora.go)
}

// adapt applies the adapter of w, if it has one, to x [N, I] and adds the result to dst [N, O].
func (t *Tape) adapt(dst, x *tensor.Tensor, w *Param) {
	a := w.Adapter
	if a == nil {
		return
	}
	mark := t.temp.Mark()
	t.Device.MatMul(dst, t.down(x, a), t.operand(a.Up), device.NT, device.MatMulOptions{
		Operand: t.Types.Operand, Scale: a.Scale, Accumulate: true,
	})
	t.temp.Release(mark)
}

// down returns x·Aᵀ [N, R] in temporary memory.
func (t *Tape) down(x *tensor.Tensor, a *Adapter) *tensor.Tensor {
	u := t.ref(t.temp.New(t.Types.Activation, x.Rows(), a.Down.Value.Dim(0)))
	t.Device.MatMul(u, x, t.operand(a.Down), device.NT, device.MatMulOptions{Operand: t.Types.Operand})
	return u
}

// adapterGrads adds the gradients of the adapter of w, if it has one, from that of the layer's result: dy [N, O].
func (t *Tape) adapterGrads(x *Var, w *Param, dy *tensor.Tensor) {
	a := w.Adapter
	if a == nil {
		return
	}
	du := t.ref(t.temp.New(t.Types.Activation, dy.Rows(), a.Up.Value.Dim(1))) // [N, R]
	t.Device.MatMul(du, dy, &a.Up.Value, device.NN, device.MatMulOptions{Operand: t.Types.Operand, Scale: a.Scale})
	t.inputGrad(x, du, &a.Down.Value)
	in := t.fusedValue(x) // [N, I]; it may allocate memory that must stay
	mark := t.temp.Mark()
	t.Device.MatMul(&a.Up.Grad, dy, t.down(in, a), device.TN, device.MatMulOptions{ // [O, R]
		Operand: t.Types.Operand, Scale: a.Scale, Accumulate: a.Up.written,
	})
	a.Up.written = true
	t.multiplyGrad(a.Down, du, in) // [R, I]
	t.temp.Release(mark)
}
