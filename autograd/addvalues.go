package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// AddValues adds weight·table[ids] to the value heads of qkv [N, (H+2K)·E], in place; it consumes qkv. table is [V,
// K·E], weight [1], ids [N].
func (t *Tape) AddValues(qkv *Var, table, weight *Param, ids *tensor.Tensor, heads device.Heads) *Var {
	out := t.wrap(t.consume(qkv))
	t.Device.AddValues(&out.Value, &table.Value, &weight.Value, ids, heads)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.w, n.w2, n.out, n.heads = addValuesBack, qkv, table, weight, out, heads
		n.tables[0] = ids
	}
	return out
}

func addValuesBack(t *Tape, n *node) {
	g, _ := t.gradOf(n.out)
	t.Device.AddValuesGrad(t.sumGrad(n.w), t.sumGrad(n.w2), g, &n.w.Value, &n.w2.Value, n.tables[0], n.heads)
	n.x.grad = n.out.grad // the gradient of a sum is the same for both terms
}
