package model

import "anneal/autograd"

// Dropout (Srivastava et al. 2014, JMLR 15) as GPT-2 places it on the residual stream: after the embedding and at the end
// of every branch, before it is added. An element becomes 0 with probability model.dropout and is divided by the
// probability of staying otherwise, so that evaluation and generation, which drop nothing, compute the expectation:
//
//	y = m∘x / keep,  m ~ Bernoulli(keep),  keep = 1 − dropout (rounded to 1/65536)
//
// Memory: none kept, masks are made again in backward; one branch's output [N, D] in scratch. Time: two passes over [N, D]
// at 2·layers + 1 places. The probabilities of attention are not dropped: within the tiled kernel that would cost a random
// number for each of [T, T], more than the attention itself.
//
// The mask is a function of (seed, step, place, token of the step, column): not of the micro-batch, of threads or of
// recomputation. The default is 0, which leaves every bit as it was. Not for pre-training on data that is seen once, where
// it only slows learning; for many epochs over little data 0.1 is usual.

// drop sets what training drops, place by place: 0 is the embedding, then come two branches a layer. Layer l of L (from 1)
// drops its branches with probability depth·l/L.
func (m *Decoder) drop(elements, depth float64) {
	m.dropEmbedding = autograd.Drop{Elements: elements}
	for i, b := range m.blocks {
		rate := depthRate(i+1, len(m.blocks), depth)
		l := b.shared()
		l.dropAttention = autograd.Drop{Site: 2*i + 1, Elements: elements, Branch: rate}
		l.dropMLP = autograd.Drop{Site: 2*i + 2, Elements: elements, Branch: rate}
	}
}
