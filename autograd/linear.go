package autograd

import "anneal/device"

// Linear returns x·wᵀ: x [N, I], w [O, I], result [N, O].
func (t *Tape) Linear(x *Var, w *Param) *Var {
	in := t.value(x)
	out := t.wrap(t.kept(t.Types.Activation, in.Rows(), w.Value.Dim(0)))
	t.Device.MatMul(&out.Value, in, &w.Value, device.NT, device.MatMulOptions{Operand: t.Types.Operand})
	if t.grad {
		n := t.node()
		n.back, n.x, n.w, n.out = linearBack, x, w, out
	}
	return out
}

func linearBack(t *Tape, n *node) {
	dy, _ := t.gradOf(n.out)
	t.weightGrad(n.w, dy, t.value(n.x))
	t.inputGrad(n.x, dy, n.w)
}

// AddLinear returns stream + a·wᵀ: stream [N, D], a [N, I], w [D, I]. It adds in place and consumes stream; the product
// goes from the accumulators straight into the sum.
func (t *Tape) AddLinear(stream, a *Var, w *Param) *Var {
	in := t.value(a)
	out := t.takeStream(stream)
	t.Device.MatMul(&out.Value, in, &w.Value, device.NT, device.MatMulOptions{Operand: t.Types.Operand, Accumulate: true})
	if t.grad {
		n := t.node()
		n.back, n.x, n.y, n.w, n.out = addLinearBack, stream, a, w, out
	}
	return out
}

func addLinearBack(t *Tape, n *node) {
	dy := t.streamGrad(n.out)
	t.weightGrad(n.w, dy, t.value(n.y))
	t.inputGrad(n.y, dy, n.w)
	n.x.grad = n.out.grad // the gradient of a sum is the same for both terms, and one buffer serves
}
