package model

import (
	"anneal/autograd"
	"anneal/nn"
)

// annealBlock is a layer of the family anneal, a recipe for small models of what public speedruns of language models
// found to pay (modded-nanogpt and nanochat; Jordan et al. 2024). To a Llama it adds, each with a key of its own:
//
//	x ← λ₁·x + λ₂·x₀                model.x0_skip: every layer sees the embedding x₀ again; λ are learned
//	v ← v + λ·table[token]          model.value_embeddings: values that no other token changes, in every second layer
//	down(max(up(h), 0)²)            model.activation: squared ReLU (So et al. 2021, arXiv 2109.08668), two matrices of 4·D
//	RMSNorm on queries and keys     model.qk_norm (Henry et al. 2020, arXiv 2010.04245)
//	c·tanh(logits/c)                model.logit_softcap (Gemma 2, arXiv 2408.00118)
//	out, down = 0 at the start      model.zero_init: every block starts as the identity, while what it reads
//	                                with starts large, by model.init = xavier
//
// Memory: a table [V, K·E] in every second layer, which costs no FLOPs; x₀ and its gradient, 2f·D a token for the model,
// and e·D a token and layer for the gradient of λ. The family also cycles windows over its layers (model.attention). Not for what
// is to be exported: no other format has a place for the first three.
type annealBlock struct {
	layer
	mix        *nn.Param // [2]: λ₁, λ₂; nil without the skip
	norm1      *nn.Param // [D]
	norm2      *nn.Param // [D]
	wup, wdown *nn.Param // [F, D], with a gate before it [2F, D]; [D, F]
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

// Forward mixes the residual stream x [N, D] with what it was at first and adds the block's two branches, those that
// training does not drop.
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

// activate returns the hidden units [N, F] of up, [N, F] or with a gate [N, 2F].
func (b *annealBlock) activate(t *autograd.Tape, up *autograd.Var) *autograd.Var {
	if b.gated {
		return t.SwiGLU(up)
	}
	return t.ReLUSquared(up)
}
