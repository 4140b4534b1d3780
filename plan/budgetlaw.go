package plan

import (
	"math"

	"anneal/scaling"
)

// budgetLaw predicts bits per byte of held-out text for budgets, from what a token costs and how many are read:
//
//	L(N, D) = (0.6 + 52.5/N^0.35 + 311/D^0.42) · (1 + 0.2/(1 + (D/2.5M)^4))    N: FLOPs of a token of training, over 6
//
// The first factor is fitted to five runs of one and three minutes on Go source with a vocabulary of 4,096
// (docs/budget.md), within 1 % of each, and then lowered, but for 0.6, by the 5.5 % that better rates brought. Their
// sizes are too close to tell all five numbers: 0.6 is an assumption and 0.35 is that of Besiroglu et al. 2024 (arXiv
// 2404.10102). The second is for runs of so few tokens that a model has not learnt yet to copy what stood before, which
// brings a sixth of the loss at once: it is fitted by eye to runs of 0.3M to 3.4M tokens, within 3 % of each. For other
// text see Text.level.
//
// Of the d tokens only unique differ: tokens that are read again are worth less, and so are parameters beyond those
// that the different tokens can fill (Muennighoff et al. 2023, scaling.EffectiveTokens and EffectiveParams).
func budgetLaw(n, d, unique float64) float64 {
	const gain, power = 0.2, 4
	law := scaling.Law{E: 0.6, A: 52.5, B: 311, Alpha: 0.35, Beta: 0.42}
	n, d = law.EffectiveParams(n, unique), scaling.EffectiveTokens(d, unique)
	return law.Loss(n, d) * (1 + gain/(1+math.Pow(d/copyTokens, power)))
}

// level is the factor from bits per byte of Go source to those of this text: bits per token are taken to be the same,
// and tokens of a larger vocabulary to stand for more bytes of the same text, as its logarithm. Runs on manuals with
// 3.15 bytes per token were 28 % below Go source, and 14 % below what this says (docs/budget.md).
func (t Text) level() float64 {
	if t.Bytes <= 0 || t.Tokens <= 0 || t.Vocab < 2 {
		return 1
	}
	const bytesPerToken, bits = 2.63, 12 // of Go source, with a vocabulary of 2^bits
	return bytesPerToken * math.Log2(float64(t.Vocab)) / bits * float64(t.Tokens) / float64(t.Bytes)
}

// copyTokens are read when about half of what a model of a whole head gains by learning to copy has been learnt.
const copyTokens = 2.5e6

// budgetLawSource is what people are told about it.
const budgetLawSource = "fitted to runs on Go source, 3 % off (docs/budget.md)"
