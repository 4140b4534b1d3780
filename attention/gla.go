package attention

import "anneal/device"

// Gated linear attention with a gate for each dimension of a key (GLA; Yang et al. 2023, arXiv 2312.06635): a layer
// forgets some features of what it read sooner than others.
//
//	S_i = S_{i−1}·diag(α_i) + v_i·k_iᵀ
//	o_i = norm(S_i·q_i/√E)
//	α   = sigmoid(a)^(1/16),  a = W₂·(W₁·h) + b
//
// with W₁ [16, D] and W₂ [K·E, 16], and b = 0 at the start, where a state halves in 16 tokens. norm divides a head by
// its root mean square. It has no gain, because the weights that follow can take its place. Logits below −64 count as
// −64. The paper's output gate is not part of the pattern.
//
// Text: gla. Time is linear in the length. Memory: as linear, and 4·K·E bytes for the logits of a token, which are as
// many as keys. In generation a layer keeps 4·K·E² numbers and 64 tokens. It runs on the CPU, and tensor parallelism
// does not cut it. Not where keys have to be replaced: see delta.go.

func readGLA(text string, options []string) (Pattern, error) {
	return Linear{Gated: true, Rule: device.VectorGateRule}, read(text, options)
}
