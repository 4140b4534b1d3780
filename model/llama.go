package model

import "anneal/autograd"

// newLlamaBlock declares a layer of Llama (Touvron et al. 2023, arXiv 2302.13971): RMSNorm before each branch, rotary
// positions, grouped-query attention (Ainslie et al. 2023), SwiGLU, no biases.
func newLlamaBlock(b *builder) *block {
	a, first := b.attentionBranch()
	return &block{attention: a, branches: []*branch{first, b.gatedMLP((*autograd.Tape).SwiGLU)}}
}
