package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Linear returns x·wᵀ, plus w's bias [O] if it has one: x [N, I], w [O, I], result [N, O].
func (t *Tape) Linear(x *Var, w *Param) *Var {
	in := t.value(x)
	out := t.wrap(t.kept(t.Types.Activation, in.Rows(), w.Value.Dim(0)))
	t.linear(&out.Value, in, w, false)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.w, n.out = linearBack, x, w, out
	}
	return out
}

func linearBack(t *Tape, n *node) {
	dy, _ := t.gradOf(n.out)
	t.linearGrads(n.x, n.w, dy)
}

// AddBranch returns stream + mask∘(a·wᵀ), with the dropout factors of d, and with w's bias added to the product if it
// has one: stream [N, D], a [N, I], w [D, I]. It adds in place and consumes stream; without dropout the product is
// added directly from the accumulators. When a segment is rerun, the sum stays pending until it is read. The caller
// must have checked Dropped before it computed a.
func (t *Tape) AddBranch(stream, a *Var, w *Param, d Drop, seq *Sequence) *Var {
	o, _ := t.mask(d, seq)
	out := t.consumeStream(stream)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.y, n.w, n.out, n.drop, n.seq = addBranchBack, stream, a, w, out, o, seq
		if t.rerunning {
			t.pending = n
			return out
		}
	}
	t.sum(out, a, w, o, seq)
	return out
}

// sum adds a·wᵀ to out, with the factors of o.
func (t *Tape) sum(out, a *Var, w *Param, o device.Dropout, seq *Sequence) {
	in := t.value(a)
	if o.Scale == 0 && !t.adds(w) {
		t.linear(&out.Value, in, w, true)
		return
	}
	mark := t.temp.Mark()
	y := t.ref(t.temp.New(out.Value.DType(), in.Rows(), out.Value.Cols())) // [N, D]
	t.linear(y, in, w, false)
	if o.Scale == 0 {
		t.sumPeers(&out.Value, y, true)
	} else {
		o.Add = true
		t.dropout(&out.Value, t.summed(y, w), o, seq)
	}
	t.temp.Release(mark)
}

// addBranchBack passes the gradient of the sum, with the branch's mask, to the branch. The gradient of the stream
// does not change. Both products of the branch would round dy, so it is rounded once before them.
func addBranchBack(t *Tape, n *node) {
	dy := t.streamGrad(n.out)
	if n.drop.Scale != 0 {
		g := t.ref(t.temp.New(t.Types.Activation, dy.Shape()...)) // [N, D]
		t.dropout(g, dy, n.drop, n.seq)
		dy = g
	} else {
		dy = t.narrowed(dy, n.w)
	}
	t.branchGrads(n.y, n.w, dy)
	n.x.grad = n.out.grad // the gradient of a sum is the same for both terms, so one buffer serves both
}

// linear writes x·wᵀ plus the bias to dst, or adds it. The bias needs no extra pass: products start from it.
func (t *Tape) linear(dst, x *tensor.Tensor, w *Param, add bool) {
	if t.quantises(w) {
		t.forwardFP8(dst, x, w, add)
		return
	}
	if w.Adapter != nil && w.Adapter.Magnitude != nil {
		t.forwardDoRA(dst, x, w, add)
		return
	}
	t.Device.MatMul(dst, x, t.operand(w), device.NT, device.MatMulOptions{
		Operand: t.Types.Operand, Accumulate: add, Bias: t.biasOf(w),
	})
	t.adapt(dst, x, w)
}

// linearGrads adds the gradients of x·wᵀ to those of x and w, and of w's bias.
func (t *Tape) linearGrads(x *Var, w *Param, dy *tensor.Tensor) {
	t.biasGrad(w, dy)
	t.productGrads(x, w, dy)
}

// branchGrads is linearGrads for products whose sum over peers is added to the stream: dy holds rows of the stream.
func (t *Tape) branchGrads(x *Var, w *Param, dy *tensor.Tensor) {
	t.biasGrad(w, dy)
	if t.adds(w) {
		dy = t.gathered(dy)
	}
	t.productGrads(x, w, dy)
}

func (t *Tape) biasGrad(w *Param, dy *tensor.Tensor) {
	if w.Bias != nil {
		t.Device.SumRows(t.sumGrad(w.Bias), dy)
	}
}

func (t *Tape) productGrads(x *Var, w *Param, dy *tensor.Tensor) {
	if t.quantises(w) {
		t.backwardFP8(x, t.value(x), w, dy)
		return
	}
	if w.Adapter != nil && w.Adapter.Magnitude != nil {
		t.backwardDoRA(x, w, dy)
		return
	}
	t.inputGrad(x, dy, &w.Value)
	t.adapterGrads(x, w, dy)
	if !w.Frozen {
		t.weightGrad(w, dy, t.fusedValue(x))
	}
}
