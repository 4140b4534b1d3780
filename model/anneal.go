package model

import (
	"anneal/autograd"
	"anneal/nn"
)

// annealBlock is a layer of the family anneal, a recipe for small models based on public speedruns of language models
// (modded-nanogpt and nanochat; Jordan et al. 2024). It extends Llama by these parts, each with its own key:
//
//	x ← λ₁·x + λ₂·x₀                model.x0_skip: every layer sees the embedding x₀ again; λ are learned
//	v ← v + λ·table[token]          model.value_embeddings: values independent of the context, in every second layer
//	down(max(up(h), 0)²)            model.activation: squared ReLU (So et al. 2021, arXiv 2109.08668), two matrices of 4·D
//	RMSNorm on queries and keys     model.qk_norm (Henry et al. 2020, arXiv 2010.04245)
//	c·tanh(logits/c)                model.logit_softcap (Gemma 2, arXiv 2408.00118)
//	out, down = 0 at the start      model.zero_init: every block starts as the identity, while its input
//	                                matrices start large, by model.init = xavier
//
// Memory: a table [V, K·E] in every second layer, which costs no FLOPs; x₀ and its gradient, 2f·D per token for the
// model; e·D per token and layer for the gradient of λ. The family also cycles windows over its layers
// (model.attention). Not for models that are to be exported: other formats cannot represent the first three parts.
type annealBlock struct {
	layer
	mix        *nn.Param // [2]: λ₁, λ₂; nil without x0_skip
	norm1      *nn.Param // [D]
	norm2      *nn.Param // [D]
	wup, wdown *nn.Param // [F, D], or [2F, D] with a gate; [D, F]
	gated      bool
	eps        float64
}

func newAnnealBlock(b *builder) *annealBlock {
	c := b.config
	x := &annealBlock{gated: c.gated(), eps: c.NormEps}
	if c.X0Skip {
		x.mix = b.scalars("mix", 1, 0.1)
	}
	x.norm1 = b.norm("attention_norm")
	x.attention = newAttention(b)
	if c.hasValues(b.layer) {
		x.attention.values = b.values("attention.values")
		x.attention.valueWeight = b.scalars("attention.value_weight", 1)
	}
	x.norm2 = b.norm("mlp_norm")
	if x.gated {
		x.wup = b.reader("mlp.gate_up", b.ffn, nn.Part{Name: "gate", Rows: c.FFN}, nn.Part{Name: "up", Rows: c.FFN})
	} else {
		x.wup = b.reader("mlp.up", b.ffn, nn.Part{Name: "up", Rows: c.FFN})
	}
	x.wdown = b.writer("mlp.down", c.FFN, b.ffn)
	return x
}

// Forward mixes the residual stream x [N, D] with its first value and adds the block's two branches, except those
// that training drops.
func (b *annealBlock) Forward(t *autograd.Tape, x *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	if b.mix != nil {
		x = t.MixStreams(x, seq.First, &b.mix.Param) // [N, D]
	}
	if !t.Dropped(b.dropAttention, seq) {
		h := t.RMSNorm(x, &b.norm1.Param, b.eps)                           // [N, D]
		a := b.attention.run(t, h, seq)                                    // [N, H·E]
		x = t.AddBranch(x, a, &b.attention.wo.Param, b.dropAttention, seq) // [N, D]
	}
	if !t.Dropped(b.dropMLP, seq) {
		h := t.RMSNorm(x, &b.norm2.Param, b.eps)              // [N, D]
		a := b.activate(t, t.Linear(h, &b.wup.Param))         // [N, F]
		x = t.AddBranch(x, a, &b.wdown.Param, b.dropMLP, seq) // [N, D]
	}
	return x
}

// activate applies the activation function to up, [N, F] or [N, 2F] with a gate, and returns the hidden units [N, F].
func (b *annealBlock) activate(t *autograd.Tape, up *autograd.Var) *autograd.Var {
	if b.gated {
		return t.SwiGLU(up)
	}
	return t.ReLUSquared(up)
}
