package nn

import "math"

// yarn interpolates by parts (Peng et al. 2023, arXiv 2309.00071). Pairs that turn more than Fast times within the
// original context distinguish neighbours and are unchanged. Pairs that turn less than Slow times have never
// completed a turn and are slowed by the whole factor. Between them the share of each is interpolated linearly in i.
// Queries and keys are also multiplied by AttentionFactor, which keeps attention over more keys equally sharp. Here
// the factor is part of the tables, so that the scale of the scores does not change.
//
// The pair that turns r times within L0 positions is i = E·ln(L0/(2πr)) / (2·ln θ); the interpolation starts at
// ⌊i(Fast)⌋ and ends at ⌈i(Slow)⌉. Fast = 32 and Slow = 1. It needs the least training of all scalings, and works
// without any. It is useless for a model that never reads beyond its context.
func (s RoPEScaling) yarn(f []float64, headSize int, theta float64, original int) {
	turning := func(r float64) float64 {
		return float64(headSize) * math.Log(float64(original)/(2*math.Pi*r)) / (2 * math.Log(theta))
	}
	from := max(math.Floor(turning(s.Fast)), 0)
	to := min(math.Ceil(turning(s.Slow)), float64(headSize-1))
	if from == to {
		to += 1e-3 // avoids a division by zero
	}
	for i := range f {
		slowed := min(max((float64(i)-from)/(to-from), 0), 1)
		f[i] = f[i]/s.Factor*slowed + f[i]*(1-slowed)
	}
}
