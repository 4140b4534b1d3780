package model

import "anneal/nn"

// Learned positions (Vaswani et al. 2017, arXiv 1706.03762 §3.5; GPT-2): a trained vector for each position within a document is
// added to the token's embedding, before dropout:
//
//	x = embed[token] + positions[p]
//
// Memory: T·D parameters with their gradient and optimizer state; one pass over [N, D]. The default of the gpt2 family. A
// model has no vector for a position beyond its context, so that it can neither be evaluated on longer rows nor extended;
// choose rope, alibi or none where that may be wanted.

// learnedPositions makes the table [T, D], or nil for a model with other positions. It is scaled, trained and decayed as the
// embedding is.
func (b *builder) learnedPositions() *nn.Param {
	if !b.config.HasPositions("learned") {
		return nil
	}
	return b.table("positions", nn.Embedding, b.config.Context)
}
