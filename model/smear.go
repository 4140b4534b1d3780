package model

import (
	"anneal/autograd"
	"anneal/nn"
)

// Smear adds to each token's embedding a share of the previous token's embedding (modded-nanogpt, Jordan et al. 2024):
//
//	x ← λ₁·x + λ₂·sigmoid(w·x[:12])·embed[token before]
//
// so that the first layer needs no head that looks one token back. λ start at 1 and 0, w at 0, so the model starts as
// it would without them. The first token of a document gets nothing. Memory: 14 parameters; e·D + 56 bytes per token.
// Time: two passes over [N, D]. muP scales nothing here: the gate reads 12 numbers at every width. Default: off.

// smear creates λ and w, or returns nil.
func (b *builder) smear() *nn.Param {
	if !b.config.Smear {
		return nil
	}
	start := make([]float64, autograd.SmearLen(b.config.Dim))
	start[0] = 1
	return b.scalars("smear", start...)
}

// theOneBefore returns the row of the previous token's embedding.
func theOneBefore(before, _ int32) int32 { return before }
