package model

import (
	"anneal/autograd"
	"anneal/nn"
)

// Smear adds to each token's embedding a share of that of the token before it (modded-nanogpt, Jordan et al. 2024):
//
//	x ← λ₁·x + λ₂·sigmoid(w·x[:12])·embed[token before]
//
// so that the first layer need not spend a head on looking one token back. λ start at 1 and 0, w at 0: the model starts
// as without. The first token of a document gets nothing. Memory: 14 parameters; e·D + 56 bytes per token. Time: two
// passes over [N, D]. Of muP nothing is scaled: the gate reads 12 numbers at every width. Default: off.

// smear creates λ and w, or returns nil.
func (b *builder) smear() *nn.Param {
	if !b.config.Smear {
		return nil
	}
	start := make([]float64, autograd.SmearLen(b.config.Dim))
	start[0] = 1
	return b.scalars("smear", start...)
}

// theOneBefore is the row of the embedding of the token before.
func theOneBefore(before, _ int32) int32 { return before }
