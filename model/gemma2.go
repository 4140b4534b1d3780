package model

import (
	"math"

	"anneal/autograd"
)

// newGemma2Block declares a layer of Gemma 2 (Gemma Team 2024, arXiv 2408.00118). It extends Llama by these parts, each
// but the first two with its own key:
//
//	x ← x + norm(branch(norm(x)))   an RMSNorm before and after each branch
//	√D·embedding                    the embedding is scaled to the size of the stream; the tied head is not
//	down(gelu(gate(h))·up(h))       model.activation: GeGLU (Shazeer 2020, arXiv 2002.05202)
//	c·tanh(s/c), c = 50             model.attention_softcap, on the scores of attention
//	c·tanh(z/c), c = 30             model.logit_softcap, on the logits
//	a window, a full layer          model.attention
//	q·k / √N                        model.score_dim: N, where it is not the size of a head
//
// Memory: two more normalised streams and two of the branches' outputs per layer, (2e+2f)·D per token. For a new model
// prefer gemma3, whose QK-norm takes the place of the soft-cap of the scores.
func newGemma2Block(b *builder) *block {
	a, first := b.attentionBranch()
	first.after = b.norm("attention_post_norm")
	second := b.gatedMLP((*autograd.Tape).GeGLU)
	second.after = b.norm("mlp_post_norm")
	return &block{attention: a, branches: []*branch{first, second}}
}

// gemma reports whether the model is a Gemma. Other formats store a Gemma's gains minus 1.
func (c Config) gemma() bool { return c.Family == "gemma2" || c.Family == "gemma3" }

// embeddingScale returns the factor of the embedding at the start of the stream.
func (c Config) embeddingScale() float64 {
	if c.gemma() {
		return math.Sqrt(float64(c.Dim))
	}
	return c.inputScale()
}
