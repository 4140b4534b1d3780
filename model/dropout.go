package model

import "anneal/autograd"

// Dropout (Srivastava et al. 2014, JMLR 15) as GPT-2 places it on the residual stream: after the embedding, and at
// the end of every branch, before it is added. An element becomes 0 with probability model.dropout and is otherwise
// divided by the probability of survival. Evaluation and generation, which drop nothing, thus compute the
// expectation:
//
//	y = m∘x / keep,  m ~ Bernoulli(keep),  keep = 1 − dropout (rounded to 1/65536)
//
// Memory: none; backward recomputes the masks. Scratch memory holds the output [N, D] of one branch. Time: two passes
// over [N, D] at 2·layers + 1 places. Attention probabilities are not dropped: in the tiled kernel that would cost a
// random number for each of [T, T], more than the attention itself.
//
// The mask is a function of (seed, step, place, token of the step, column), independent of micro-batch, threads and
// recomputation. The default is 0, which changes no bits. Not for pre-training on data that is seen once, where it
// only slows learning; 0.1 is usual for many epochs over little data.

// drop sets the dropout rate of each place: place 0 is the embedding, followed by two branches per layer. Layer l of
// L (from 1) drops its branches with probability depth·l/L.
func (m *Decoder) drop(elements, depth float64) {
	m.dropEmbedding = autograd.Drop{Elements: elements}
	for i, b := range m.blocks {
		rate := depthRate(i+1, m.Config.Layers, depth)
		for j, r := range b.branches {
			r.drop = autograd.Drop{Site: 2*i + 1 + j, Elements: elements, Branch: rate}
		}
	}
}
