package model

import (
	"anneal/autograd"
	"anneal/nn"
)

// gpt2Block is a layer of GPT-2 (Radford et al. 2019): LayerNorm before each branch, as many key-value heads as query
// heads, GELU between two matrices, F = 4·D, and biases on all weights except tables. Its positions are learned
// (positions_learned.go) and its head is tied to the embedding. Biases start at 0; optimizer.groups.bias sets their
// decay: GPT-2 and GPT-3 decay them like everything else, current recipes do not.
//
// It costs the same per token as a Llama of the same size: LayerNorm and biases work on data that is in the cache
// anyway. The comments in Forward give the results and what is kept per token and layer; results marked ~ are
// recomputed by backward. Not for a new model: RMSNorm, SwiGLU and rotary positions learn more per step. Use it to
// continue from GPT-2's weights, or to compare with published GPT-2 results.
type gpt2Block struct {
	layer
	norm1, norm2 *nn.Param // [D], with biases [D]
	wup, wdown   *nn.Param // [F, D] and [D, F], with biases [F] and [D]
	eps          float64
}

func newGPT2Block(b *builder) *gpt2Block {
	x := &gpt2Block{eps: b.config.NormEps}
	x.norm1 = b.norm("attention_norm")
	x.attention = newAttention(b)
	x.norm2 = b.norm("mlp_norm")
	x.wup = b.reader("mlp.up", b.ffn, nn.Part{Name: "up", Rows: b.config.FFN})
	x.wdown = b.writer("mlp.down", b.config.FFN, b.ffn)
	return x
}

// Forward adds the block's two branches to the residual stream x [N, D], except those that training drops.
func (b *gpt2Block) Forward(t *autograd.Tape, x *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	if !t.Dropped(b.dropAttention, seq) {
		h := t.LayerNorm(x, &b.norm1.Param, b.eps)                         // ~[N, D]     keeps the rows before the gain
		a := b.attention.run(t, h, seq)                                    //  [N, H·E]   keeps q, k, v and its result
		x = t.AddBranch(x, a, &b.attention.wo.Param, b.dropAttention, seq) //  [N, D]     in place
	}
	if !t.Dropped(b.dropMLP, seq) {
		h := t.LayerNorm(x, &b.norm2.Param, b.eps)                    // ~[N, D]     keeps the rows before the gain
		u := t.Linear(h, &b.wup.Param)                                //  [N, F]     keeps them
		x = t.AddBranch(x, t.GELU(u), &b.wdown.Param, b.dropMLP, seq) // ~[N, F], then [N, D] in place
	}
	return x
}
