package autograd

import "anneal/tensor"

// Embedding starts the residual stream: it returns the rows ids [N] of table [V, D] as [N, D]. If this rank has only
// some rows of the table, peers look up the others.
func (t *Tape) Embedding(table *Param, ids *tensor.Tensor) *Var {
	if t.cutRows(table) {
		return t.embedCut(table, ids)
	}
	ids = t.ofStream(ids)
	out := t.wrap(t.keep.New(t.Types.Stream, ids.Len(), table.Value.Dim(1)))
	t.Device.Embedding(&out.Value, &table.Value, ids)
	if t.grad {
		n := t.node()
		n.backward, n.w, n.out = embeddingBack, table, out
		n.tables[0] = ids
	}
	return out
}

func embeddingBack(t *Tape, n *node) {
	if n.w.Frozen {
		return
	}
	t.Device.EmbeddingGrad(t.sumGrad(n.w), t.streamGrad(n.out), n.tables[0])
}

// AddEmbedding adds the rows ids [N] of table [V, D] to the residual stream x [N, D], in place; it consumes x.
func (t *Tape) AddEmbedding(x *Var, table *Param, ids *tensor.Tensor) *Var {
	ids = t.ofStream(ids)
	out := t.consumeStream(x)
	mark := t.temp.Mark()
	rows := t.ref(t.temp.New(t.Types.Stream, ids.Len(), table.Value.Dim(1)))
	t.Device.Embedding(rows, &table.Value, ids)
	t.Device.Add(&out.Value, rows)
	t.temp.Release(mark)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.w, n.out = addEmbeddingBack, x, table, out
		n.tables[0] = ids
	}
	return out
}

func addEmbeddingBack(t *Tape, n *node) {
	embeddingBack(t, n)
	n.x.grad = n.out.grad // the gradient of a sum is the same for both terms
}
