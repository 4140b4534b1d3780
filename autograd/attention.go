package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// RoPE rotates the query and key heads of qkv [N, (H+2K)·E] by their positions, in place; it consumes qkv.
// cos and sin are [T, E/2] tables.
func (t *Tape) RoPE(qkv *Var, cos, sin *tensor.Tensor, heads device.Heads, seq *Sequence) *Var {
	out := t.wrap(t.consume(qkv))
	t.Device.RoPE(&out.Value, cos, sin, &seq.Pos, heads, false)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.out, n.heads = ropeBack, qkv, out, heads
		n.tables = [3]*tensor.Tensor{cos, sin, &seq.Pos}
	}
	return out
}

func ropeBack(t *Tape, n *node) {
	g, _ := t.gradOf(n.out)
	t.Device.RoPE(g, n.tables[0], n.tables[1], n.tables[2], n.heads, true)
	n.x.grad = n.out.grad
}

// Attention returns softmax(s·q·kᵀ + mask)·v for all heads, with s = heads.ScoreScale(): qkv [N, (H+2K)·E], result
// [N, H·E]. It keeps the result and one log-sum-exp per row and head, never a [T, T] matrix.
func (t *Tape) Attention(qkv *Var, heads device.Heads, mask device.Mask) *Var {
	in := t.value(qkv)
	rows := in.Rows()
	lse := t.keptRef(t.Types.Stat, heads.Q, rows)
	out := t.wrap(t.kept(t.Types.Activation, rows, heads.Q*heads.Size))
	t.Device.Attention(&out.Value, lse, in, heads, mask)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.out, n.heads, n.mask = attentionBack, qkv, out, heads, mask
		n.saved[0] = lse
	}
	return out
}

func attentionBack(t *Tape, n *node) {
	dout, _ := t.gradOf(n.out)
	g := t.onlyGrad(n.x)
	t.Device.AttentionGrad(g, dout, &n.out.Value, n.saved[0], t.value(n.x), n.heads, n.mask)
}
