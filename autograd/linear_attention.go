package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// LinearAttention returns for each token and head the mean of the visible values with weights φ(q)·φ(k), decayed by
// gates unless they are nil, or the result of another heads.Rule (device.Device.LinearAttention): qkv [N, (H+2K)·E],
// gates [N, K] or [N, 2K] or nil, result [N, H·E]. It keeps the result and one denominator per row and head.
func (t *Tape) LinearAttention(qkv, gates *Var, heads device.Heads, mask device.Mask) *Var {
	in := t.value(qkv)
	rows := in.Rows()
	norm := t.keptRef(t.Types.Stat, heads.Q, rows)
	out := t.wrap(t.kept(t.Types.Activation, rows, heads.Q*heads.Size))
	t.Device.LinearAttention(&out.Value, norm, in, t.optional(gates), heads, mask)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.y, n.out, n.heads, n.mask = linearAttentionBack, qkv, gates, out, heads, mask
		n.saved[0] = norm
	}
	return out
}

func linearAttentionBack(t *Tape, n *node) {
	dout, _ := t.gradOf(n.out)
	var dgates *tensor.Tensor
	if n.y != nil {
		dgates = t.onlyGrad(n.y)
	}
	g := t.onlyGrad(n.x)
	t.Device.LinearAttentionGrad(g, dgates, dout, &n.out.Value, n.saved[0], t.value(n.x), t.optional(n.y),
		n.heads, n.mask)
}

// optional is like value, but v may be nil.
func (t *Tape) optional(v *Var) *tensor.Tensor {
	if v == nil {
		return nil
	}
	return t.value(v)
}

// Gates is Linear with its result in Types.Stat, because gates near 1 differ by little: x [N, D], w [K, D], result
// [N, K].
func (t *Tape) Gates(x *Var, w *Param) *Var {
	in := t.value(x)
	out := t.wrap(t.kept(t.Types.Stat, in.Rows(), w.Value.Dim(0)))
	t.linear(&out.Value, in, w, false)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.w, n.out = linearBack, x, w, out
	}
	return out
}
