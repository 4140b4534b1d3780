package model

import (
	"anneal/autograd"
	"anneal/nn"
)

// llamaBlock is a layer of Llama (Touvron et al. 2023, arXiv 2302.13971): RMSNorm before each branch, rotary
// positions, grouped-query attention (Ainslie et al. 2023), SwiGLU, no biases.
type llamaBlock struct {
	layer
	norm1      *nn.Param // [D]
	norm2      *nn.Param // [D]
	wgu, wdown *nn.Param // [2F, D], [D, F]
	eps        float64
}

func newLlamaBlock(b *builder) *llamaBlock {
	c := b.config
	x := &llamaBlock{eps: c.NormEps}
	x.norm1 = b.norm("attention_norm")
	x.attention = newAttention(b)
	x.norm2 = b.norm("mlp_norm")
	x.wgu = b.reader("mlp.gate_up", b.ffn, nn.Part{Name: "gate", Rows: c.FFN}, nn.Part{Name: "up", Rows: c.FFN})
	x.wdown = b.writer("mlp.down", c.FFN, b.ffn)
	return x
}

// Forward adds the block's two branches to the residual stream x [N, D], except those that training drops.
func (b *llamaBlock) Forward(t *autograd.Tape, x *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	if !t.Dropped(b.dropAttention, seq) {
		h := t.RMSNorm(x, &b.norm1.Param, b.eps)                           // [N, D]
		a := b.attention.run(t, h, seq)                                    // [N, H·E]
		x = t.AddBranch(x, a, &b.attention.wo.Param, b.dropAttention, seq) // [N, D]
	}
	if !t.Dropped(b.dropMLP, seq) {
		h := t.RMSNorm(x, &b.norm2.Param, b.eps)                         // [N, D]
		gu := t.Linear(h, &b.wgu.Param)                                  // [N, 2F]
		x = t.AddBranch(x, t.SwiGLU(gu), &b.wdown.Param, b.dropMLP, seq) // [N, D]
	}
	return x
}
