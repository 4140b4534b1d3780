package scaling

import "math"

// Repeated tokens are worth less each time, and parameters beyond those that the different tokens can train are worth
// less, too (Muennighoff et al. 2023, arXiv 2305.16264, from 182 models of 7M to 9B parameters):
//
//	D' = U·(1 + R*·(1 − e^(−R/R*)))      U different tokens, each read R times after the first
//	N' = U_N·(1 + R_N*·(1 − e^(−R_N/R_N*)))   U_N: the compute-optimal size for U tokens, or N if that is less
//	                                           R_N = N/U_N − 1
//
// U is here all text that there is, also if training reads a part of it: parameters that it cannot fill are worth less
// within the first epoch too, so that the loss has no step where the second one begins.
// The loss is L(N', D'). Four epochs are worth 93 % of the same number of new tokens, forty epochs 38 %.
const (
	repetitionDecay = 15.387756 // R*: of tokens
	excessDecay     = 5.309743  // R_N*: of parameters
)

// saturate returns the worth of total units. The first unique units are worth 1 each, further ones less and less.
func saturate(total, unique, decay float64) float64 {
	if total <= unique {
		return total
	}
	return unique * (1 + decay*-math.Expm1(-(total/unique-1)/decay))
}

// EffectiveTokens returns D': how many tokens read once are worth as much as the given tokens, of which only unique
// are different.
func EffectiveTokens(tokens, unique float64) float64 {
	return saturate(tokens, unique, repetitionDecay)
}

// EffectiveParams returns N': the worth of params parameters trained on unique different tokens.
func (l Law) EffectiveParams(params, unique float64) float64 {
	return saturate(params, l.OptimumOfTokens(unique).Params, excessDecay)
}

// Repeated returns the model with the given size and training tokens, if only unique tokens are different. With
// unlimited different tokens it is the same as Model.
func (l Law) Repeated(params, tokens, unique float64) Model {
	m := l.Model(params, tokens)
	m.Loss = l.Loss(l.EffectiveParams(params, unique), EffectiveTokens(tokens, unique))
	return m
}

// RepeatedOptimum returns the model with the lowest loss of all models that take the given FLOPs to train, if only
// unique tokens are different. It is smaller than the compute-optimal model and reads its data several times.
func (l Law) RepeatedOptimum(flops, unique float64) Model {
	free := l.Optimum(flops)
	if free.Tokens <= unique {
		return free
	}
	loss := func(logParams float64) float64 {
		n := math.Exp(logParams)
		return l.Repeated(n, flops/flopsPerToken/n, unique).Loss
	}
	middle := math.Log(free.Params)
	n := math.Exp(goldenSection(loss, middle-math.Log(1e6), middle+math.Log(1e6)))
	return l.Repeated(n, flops/flopsPerToken/n, unique)
}

// goldenSection returns the place of the minimum of a function that has a single minimum between low and high.
func goldenSection(f func(float64) float64, low, high float64) float64 {
	const ratio = 0.6180339887498949
	a, b := high-ratio*(high-low), low+ratio*(high-low)
	fa, fb := f(a), f(b)
	for high-low > 1e-9*max(1, math.Abs(low)) {
		if fa <= fb {
			high, b, fb = b, a, fa
			a = high - ratio*(high-low)
			fa = f(a)
		} else {
			low, a, fa = a, b, fb
			b = low + ratio*(high-low)
			fb = f(b)
		}
	}
	return (low + high) / 2
}
