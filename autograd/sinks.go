package autograd

import "anneal/device"

// AttentionWithSinks is Attention with a learned logit for each head in the denominator of its softmax (device.Mask):
// sinks [H]. Forward costs nothing more; backward also reads the result and its gradient.
func (t *Tape) AttentionWithSinks(qkv *Var, sinks *Param, heads device.Heads, mask device.Mask) *Var {
	mask.Sinks = &sinks.Value
	out := t.Attention(qkv, heads, mask)
	if t.grad {
		n := t.nodes[t.nodeN-1]
		n.backward, n.w = sinksBack, sinks
	}
	return out
}

func sinksBack(t *Tape, n *node) {
	dout, _ := t.gradOf(n.out)
	t.Device.AttentionSinksGrad(t.sumGrad(n.w), dout, &n.out.Value, n.saved[0], &n.w.Value, n.heads)
	attentionBack(t, n)
}
