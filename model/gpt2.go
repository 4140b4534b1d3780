package model

import "anneal/autograd"

// newGPT2Block declares a layer of GPT-2 (Radford et al. 2019): LayerNorm before each branch, as many key-value heads
// as query heads, GELU between two matrices, F = 4·D, and biases on all weights except tables. Its positions are
// learned (positions_learned.go) and its head is tied to the embedding. Biases start at 0; optimizer.groups.bias sets
// their decay: GPT-2 and GPT-3 decay them like everything else, current recipes do not.
//
// It costs the same per token as a Llama of the same size: LayerNorm and biases work on data that is in the cache
// anyway. Not for a new model: RMSNorm, SwiGLU and rotary positions learn more per step. Use it to
// continue from GPT-2's weights, or to compare with published GPT-2 results.
func newGPT2Block(b *builder) *block {
	a, first := b.attentionBranch()
	return &block{attention: a, branches: []*branch{first, b.plainMLP((*autograd.Tape).GELU)}}
}
