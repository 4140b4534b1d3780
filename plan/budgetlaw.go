package plan

import (
	"math"

	"anneal/scaling"
)

// budgetLaw predicts bits per byte of held-out text for budgets, from the cost of a token and the number of tokens
// read:
//
//	L(N, D) = (0.6 + 52.5/N^0.35 + 311/D^0.42) · (1 + 0.2/(1 + (D/2.5M)^4))    N: FLOPs of a token of training, over 6
//
// The first factor is fitted to five runs of one and three minutes on Go source with a vocabulary of 4,096
// (docs/budget.md), within 1 % of each, and then lowered, but for 0.6, by the 5.5 % that better rates brought. Their
// sizes are too close to tell all five numbers: 0.6 is an assumption and 0.35 is that of Besiroglu et al. 2024 (arXiv
// 2404.10102). The second is for runs of so few tokens that the model has not yet learnt to copy earlier text, which
// lowers the loss by a sixth at once. It is fitted by eye to runs of 0.3M to 3.4M tokens, within 3 % of each. For
// other text see Text.level.
//
// Only unique of the d tokens are different. Repeated tokens are worth less, and so are parameters beyond those that
// the unique tokens can train (Muennighoff et al. 2023, scaling.EffectiveTokens and EffectiveParams).
func budgetLaw(n, d, unique float64) float64 {
	const gain, power = 0.2, 4
	law := scaling.Law{E: 0.6, A: 52.5, B: 311, Alpha: 0.35, Beta: 0.42}
	n, d = law.EffectiveParams(n, unique), scaling.EffectiveTokens(d, unique)
	return law.Loss(n, d) * (1 + gain/(1+math.Pow(d/copyTokens, power)))
}

// level returns the factor from bits per byte of Go source to bits per byte of this text. It assumes that bits per
// token are the same, and that bytes per token of the same text grow with the logarithm of the vocabulary. Runs on
// manuals with 3.15 bytes per token were 28 % below Go source, and 14 % below this estimate (docs/budget.md).
func (t Text) level() float64 {
	if t.Bytes <= 0 || t.Tokens <= 0 || t.Vocab < 2 {
		return 1
	}
	const bytesPerToken, bits = 2.63, 12 // of Go source, with a vocabulary of 2^bits
	return bytesPerToken * math.Log2(float64(t.Vocab)) / bits * float64(t.Tokens) / float64(t.Bytes)
}

// copyTokens is the number of tokens after which a model with a whole head has about half of the gain from learning to
// copy.
const copyTokens = 2.5e6

// budgetLawSource describes the law to users.
const budgetLawSource = "fitted to runs on Go source, 3 % off (docs/budget.md)"
