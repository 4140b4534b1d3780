package model

import "anneal/nn"

// Learned positions (Vaswani et al. 2017, arXiv 1706.03762 §3.5; GPT-2): a trained vector for each position within a
// document is added to the token's embedding, before dropout:
//
//	x = embed[token] + positions[p]
//
// Memory: T·D parameters with their gradient and optimizer state; one pass over [N, D]. Default of the gpt2 family.
// The model has no vectors beyond its context, so it cannot be evaluated on longer rows or extended; use rope, alibi
// or none if that may be needed.

// learnedPositions creates the table [T, D], or returns nil for a model with other positions. It is scaled, trained
// and decayed like the embedding.
func (b *builder) learnedPositions() *nn.Param {
	if !b.config.HasPositions("learned") {
		return nil
	}
	p := b.table("positions", nn.Embedding, b.config.Context)
	b.part.sumTokens(p)
	return p
}
