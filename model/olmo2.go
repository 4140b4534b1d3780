package model

import "anneal/autograd"

// newOlmo2Block declares a layer of OLMo 2 (OLMo Team 2024, arXiv 2501.00656): Llama with norms after its branches
// instead of before them, and with an RMSNorm of all queries together, and of all keys, instead of one for each head:
//
//	x ← x + norm(branch(x))
//
// Branches read the stream unnormalised, and the size of what they add is set by the gains. Training is more stable
// than with norms before the branches (figure 8 of the paper). Memory: one more copy of the stream and one of the
// branch's output for each branch, (2e+2f)·D per token and layer. Not with kv_heads < heads, nor with tensor
// parallelism: the norm of queries needs all heads; nor on CUDA, whose kernel of QK-norm has room for one head.
func newOlmo2Block(b *builder) *block {
	a := newAttention(b)
	first := &branch{body: a, out: a.wo, eps: b.config.NormEps}
	first.after = b.norm("attention_post_norm")
	second := b.mlpBody("mlp.gate_up", (*autograd.Tape).SwiGLU, b.gateUpParts()...)
	second.after = b.norm("mlp_post_norm")
	return &block{attention: a, branches: []*branch{first, second}}
}

// normsWhole reports whether QK-norm is over all heads together.
func (c Config) normsWhole() bool { return c.Family == "olmo2" }

// qkNormSize is the length of a gain of QK-norm.
func (c Config) qkNormSize() int {
	if c.normsWhole() {
		return c.Heads * c.HeadDim
	}
	return c.HeadDim
}
