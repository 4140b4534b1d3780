package nn

import "math"

// yarn interpolates by parts (Peng et al. 2023, arXiv 2309.00071): pairs that turn more than Fast times within the original
// context tell neighbours apart and stay; those that turn less than Slow times have never been seen all around
// and are slowed by the whole factor; between them the share of each goes along a line in i. Queries and keys are also multiplied
// by AttentionFactor, which makes attention over more keys as sharp as it was; here that is part of the tables, so that
// the scale of the scores stays as it is.
//
// The pair that turns r times within L0 positions is i = E·ln(L0/(2πr)) / (2·ln θ); the line begins at ⌊i(Fast)⌋ and ends at
// ⌈i(Slow)⌉. Fast = 32 and Slow = 1. Of the scalings it needs the least training, and works without any; for a model that
// will never read beyond its context it is of no use.
func (s RoPEScaling) yarn(f []float64, headSize int, theta float64) {
	turning := func(r float64) float64 {
		return float64(headSize) * math.Log(float64(s.Original)/(2*math.Pi*r)) / (2 * math.Log(theta))
	}
	from := max(math.Floor(turning(s.Fast)), 0)
	to := min(math.Ceil(turning(s.Slow)), float64(headSize-1))
	if from == to {
		to += 1e-3 // a step
	}
	for i := range f {
		slowed := min(max((float64(i)-from)/(to-from), 0), 1)
		f[i] = f[i]/s.Factor*slowed + f[i]*(1-slowed)
	}
}
