package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Linear returns x·wᵀ: x [N, I], w [O, I], result [N, O].
func (t *Tape) Linear(x *Var, w *Param) *Var {
	in := t.value(x)
	out := t.wrap(t.kept(t.Types.Activation, in.Rows(), w.Value.Dim(0)))
	t.linear(&out.Value, in, w, false)
	if t.grad {
		n := t.node()
		n.back, n.x, n.w, n.out = linearBack, x, w, out
	}
	return out
}

func linearBack(t *Tape, n *node) {
	dy, _ := t.gradOf(n.out)
	t.linearGrads(n.x, n.w, dy)
}

// AddLinear returns stream + a·wᵀ: stream [N, D], a [N, I], w [D, I]. It adds in place and consumes stream; the product
// goes from the accumulators straight into the sum.
func (t *Tape) AddLinear(stream, a *Var, w *Param) *Var {
	in := t.value(a)
	out := t.takeStream(stream)
	t.linear(&out.Value, in, w, true)
	if t.grad {
		n := t.node()
		n.back, n.x, n.y, n.w, n.out = addLinearBack, stream, a, w, out
	}
	return out
}

func addLinearBack(t *Tape, n *node) {
	dy := t.streamGrad(n.out)
	t.linearGrads(n.y, n.w, dy)
	n.x.grad = n.out.grad // the gradient of a sum is the same for both terms, and one buffer serves
}

// linear writes x·wᵀ to dst, or adds it.
func (t *Tape) linear(dst, x *tensor.Tensor, w *Param, add bool) {
	if t.Types.FP8 && w.FP8 != nil {
		t.forwardFP8(dst, x, w, add)
		return
	}
	t.Device.MatMul(dst, x, &w.Value, device.NT, device.MatMulOptions{Operand: t.Types.Operand, Accumulate: add})
}

// linearGrads adds the gradients of x·wᵀ to those of x and w.
func (t *Tape) linearGrads(x *Var, w *Param, dy *tensor.Tensor) {
	in := t.value(x)
	if t.Types.FP8 && w.FP8 != nil {
		t.backwardFP8(x, in, w, dy)
		return
	}
	t.weightGrad(w, dy, in)
	t.inputGrad(x, dy, w)
}
