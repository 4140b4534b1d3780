package autograd

import "anneal/tensor"

// Embedding starts the residual stream: rows ids [N] of table [V, D] as [N, D].
func (t *Tape) Embedding(table *Param, ids *tensor.Tensor) *Var {
	out := t.wrap(t.keep.New(t.Types.Stream, ids.Len(), table.Value.Dim(1)))
	t.Device.Embedding(&out.Value, &table.Value, ids)
	if t.grad {
		n := t.node()
		n.back, n.w, n.out = embeddingBack, table, out
		n.tables[0] = ids
	}
	return out
}

func embeddingBack(t *Tape, n *node) {
	t.Device.EmbeddingGrad(t.sumGrad(n.w), t.streamGrad(n.out), n.tables[0])
}
