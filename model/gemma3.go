package model

import (
	"math"

	"anneal/autograd"
)

// newGemma3Block declares a layer of Gemma 3 (Gemma Team 2025, arXiv 2503.19786). It extends Llama by these parts, each
// but the first two with its own key:
//
//	x ← x + norm(branch(norm(x)))   an RMSNorm before and after each branch
//	√D·embedding                    the embedding is scaled to the size of the stream; the tied head is not
//	down(gelu(gate(h))·up(h))       model.activation: GeGLU (Shazeer 2020, arXiv 2002.05202)
//	RMSNorm on queries and keys     model.qk_norm
//	five windows, one full layer    model.attention
//	two bases of rotary positions   model.rope_theta_local for layers with windows, model.rope_theta for the others
//	q·k / √N                        model.score_dim: N, where it is not the size of a head
//	c·tanh(logits/c)                model.logit_softcap, as Gemma 2 had it (arXiv 2408.00118)
//
// Memory: two more normalised streams and two of the branches' outputs per layer, (2e+2f)·D per token.
func newGemma3Block(b *builder) *block {
	a, first := b.attentionBranch()
	first.after = b.norm("attention_post_norm")
	second := b.gatedMLP((*autograd.Tape).GeGLU)
	second.after = b.norm("mlp_post_norm")
	return &block{attention: a, branches: []*branch{first, second}}
}

// embeddingScale returns the factor of the embedding where it begins the stream.
func (c Config) embeddingScale() float64 {
	if c.Family == "gemma3" {
		return math.Sqrt(float64(c.Dim))
	}
	return c.inputScale()
}
