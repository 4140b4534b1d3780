package model

import "anneal/autograd"

// newAnnealBlock declares a layer of the family anneal, a recipe for small models based on public speedruns of language
// models (modded-nanogpt and nanochat; Jordan et al. 2024). It extends Llama by these parts, each with its own key:
//
//	x ← λ₁·x + λ₂·x₀                model.x0_skip: every layer sees the embedding x₀ again; λ are learned
//	v ← v + λ·table[token]          model.value_embeddings: values independent of the context, in every second layer
//	down(max(up(h), 0)²)            model.activation: squared ReLU (So et al. 2021, arXiv 2109.08668), two matrices of
//	                                4·D
//	RMSNorm on queries and keys     model.qk_norm (Henry et al. 2020, arXiv 2010.04245)
//	c·tanh(logits/c)                model.logit_softcap (Gemma 2, arXiv 2408.00118)
//	embed[token] + bigram[pair]     model.bigram: a table of pairs of tokens (bigram.go); off unless asked for
//	x ← λ₁·x + λ₂·gate·x_before     model.smear: a share of the embedding before (smear.go); off unless asked for
//	out, down = 0 at the start      model.zero_init: every block starts as the identity, while its input
//	                                matrices start large, by model.init = xavier
//
// Memory: a table [V, K·E] in every second layer, which costs no FLOPs; x₀ and its gradient, 2f·D per token for the
// model; e·D per token and layer for the gradient of λ. The family also cycles windows over its layers
// (model.attention). Not for models that will be exported: other formats cannot represent the first three parts,
// bigrams or smear.
func newAnnealBlock(b *builder) *block {
	c, x := b.config, &block{}
	if c.X0Skip {
		x.mix = b.scalars("mix", 1, 0.1)
		b.part.sumTokens(x.mix)
	}
	a, first := b.attentionBranch()
	if c.hasValues(b.layer) {
		a.values = b.values("attention.values")
		a.valueWeight = b.scalars("attention.value_weight", 1)
		b.part.sumAll(a.valueWeight)
	}
	var second *branch
	if c.gated() {
		second = b.gatedMLP((*autograd.Tape).SwiGLU)
	} else {
		second = b.plainMLP((*autograd.Tape).ReLUSquared)
	}
	x.attention, x.branches = a, []*branch{first, second}
	return x
}
