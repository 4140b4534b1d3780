package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// smearColumns is the number of elements of an embedding that its gate reads.
const smearColumns = 12

// SmearLen returns the length of the weights of Smear for a stream of width d.
func SmearLen(d int) int { return 2 + min(d, smearColumns) }

// Smear returns w[0]·x + w[1]·sigmoid(w[2:]·x[:12])·table[before], row by row: x [N, D] on the residual stream, which
// it consumes, w [SmearLen(D)], table [V, D], before [N] (I32; device.Elsewhere adds nothing). It keeps a copy of x
// (N·D activations), its first columns and the gates.
func (t *Tape) Smear(x *Var, w, table *Param, before *tensor.Tensor) *Var {
	in := t.value(x)
	n, d, cols := in.Rows(), in.Cols(), w.Value.Len()-2
	out := t.consumeStream(x)
	head := t.keptRef(t.Types.Stat, n, cols) // [N, 12]
	t.Device.CopyRuns(head, &out.Value, device.Runs{Count: 1, Rows: n, Cols: cols})
	gates := t.keptRef(t.Types.Stat, n, 1) // [N, 1]
	t.Device.MatMul(gates, head, t.gateOf(&w.Value), device.NT, device.MatMulOptions{Operand: t.Types.Stat})
	var kept *tensor.Tensor
	if t.grad {
		kept = t.keptRef(t.Types.Activation, n, d) // [N, D]
	}
	mark := t.temp.Mark()
	_, gated := t.smeared(table, before, gates) // [N, D]
	t.Device.MixStreams(&out.Value, kept, gated, t.ref(w.Value.Slice(0, 2)))
	t.temp.Release(mark)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.w, n.w2, n.out = smearBack, x, w, table, out
		n.saved, n.tables[0] = [3]*tensor.Tensor{head, gates, kept}, before
	}
	return out
}

// gateOf returns the weights [1, 12] of the gate of w, or their gradient.
func (t *Tape) gateOf(w *tensor.Tensor) *tensor.Tensor {
	part := w.Slice(2, w.Len())
	return t.ref(part.Reshape(1, w.Len()-2))
}

// smeared returns the rows before [N] of table, and these rows times sigmoid(gates), both [N, D] and temporary.
func (t *Tape) smeared(table *Param, before, gates *tensor.Tensor) (rows, gated *tensor.Tensor) {
	rows = t.ref(t.temp.New(t.Types.Stream, before.Len(), table.Value.Dim(1)))
	gated = t.ref(t.temp.New(t.Types.Stream, before.Len(), table.Value.Dim(1)))
	t.Device.Embedding(rows, &table.Value, before)
	t.Device.Zero(gated)
	t.Device.GateRows(gated, rows, gates)
	return rows, gated
}

func smearBack(t *Tape, n *node) {
	head, gates, kept, before := n.saved[0], n.saved[1], n.saved[2], n.tables[0]
	mark := t.temp.Mark()
	dx, dw := t.streamGrad(n.out), t.sumGrad(n.w)
	rows, gated := t.smeared(n.w2, before, gates)
	dy := t.ref(t.temp.New(t.Types.Stream, dx.Shape()...)) // [N, D]: of gated
	t.Device.Zero(dy)
	t.Device.MixStreamsGrad(dx, dy, t.ref(dw.Slice(0, 2)), kept, gated, t.ref(n.w.Value.Slice(0, 2)))
	dgates := t.ref(t.temp.New(t.Types.Stat, gates.Shape()...)) // [N, 1]
	t.Device.GateRowsGrad(rows, dgates, dy, rows, gates)
	if !n.w2.Frozen {
		t.Device.EmbeddingGrad(t.sumGrad(n.w2), rows, before)
	}
	o := device.MatMulOptions{Operand: t.Types.Stat}
	dhead := t.ref(t.temp.New(t.Types.Stat, head.Shape()...)) // [N, 12]
	t.Device.MatMul(dhead, dgates, t.gateOf(&n.w.Value), device.NN, o)
	t.Device.CopyRuns(dx, dhead, device.Runs{Count: 1, Rows: head.Rows(), Cols: head.Cols(), Add: true})
	o.Accumulate = true
	t.Device.MatMul(t.gateOf(dw), dgates, head, device.TN, o)
	t.temp.Release(mark)
	n.x.grad = n.out.grad // the gradient of the result is not read again, so its buffer is reused
}
