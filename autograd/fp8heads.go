package autograd

import "anneal/device"

// Attention with FP8 operands (FlashAttention-3, Shah et al. 2024, arXiv 2407.08608): queries, keys, values and
// probabilities are rounded to E4M3, and both products are summed in FP32.
//
//	q, k, v = 2^e·E4M3(2^−e·q), …      e of each head of a token: the least without clipping (QuantizeBlocks)
//	p = 2⁻⁸·E4M3(2⁸·exp(q·k/√E − m))   m is the largest score so far; the sum of p is taken before rounding
//
// A scale per head and token, where FlashAttention-3 has one per block of tokens, depends on nothing but the token: no
// query learns from the scale of a key that follows it, and neither caches, packing nor ranks change a bit. Powers of
// two make scaling back exact in BF16 storage. Gradients pass the rounding as they are and have the operands of policy
// bf16, with the rounded queries, keys and values.
//
// Memory: none; values are rounded in place. Cost: one pass over q, k and v, and the rounding of each probability; the
// products are still of BF16 operands, on cards as well, so it is slower than without. Default: off. Use it to study
// what FP8 attention does to a model.

// QuantizeHeads rounds the heads of qkv [N, (H+2K)·E] in place and consumes it. It returns them, and heads with FP8
// probabilities.
func (t *Tape) QuantizeHeads(qkv *Var, heads device.Heads) (*Var, device.Heads) {
	out := t.wrap(t.consume(qkv))
	t.Device.QuantizeBlocks(&out.Value, &out.Value, 1, heads.Size)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.out = passGradient, qkv, out
	}
	heads.FP8 = true
	return out, heads
}

// passGradient makes the gradient of a result that of what it consumed.
func passGradient(t *Tape, n *node) {
	t.gradOf(n.out)
	n.x.grad = n.out.grad
}
