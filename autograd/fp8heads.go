package autograd

import "anneal/device"

// Attention with FP8 operands (FlashAttention-3, Shah et al. 2024, arXiv 2407.08608): queries, keys, values and
// probabilities are rounded to E4M3, and both products are summed in FP32.
//
//	q, k, v = 2^e·E4M3(2^−e·q), …      e of each head of a token: the least without clipping (QuantizeBlocks)
//	p = 2⁻⁸·E4M3(2⁸·exp(q·k/√E − m))   m is the largest score so far; the sum of p is taken before rounding
//
// FlashAttention-3 has one scale per block of tokens. Here there is one per head and token, which depends on that
// token alone: a query cannot learn from the scale of a later key, and caches, packing and ranks do not change a bit.
// The scales are powers of two, so scaling back is exact in BF16 storage. Gradients pass through the rounding
// unchanged; their products have the operands of policy bf16 and read the rounded queries, keys and values.
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

// passGradient passes the gradient of a result on to the value that it consumed.
func passGradient(t *Tape, n *node) {
	t.gradOf(n.out)
	n.x.grad = n.out.grad
}
