package nn

import "math"

// ntk is the scaling that goes by the neural tangent kernel ("NTK-aware", bloc97 2023; derived in arXiv 2309.00071 §3.1): the base
// θ becomes θ·s^(E/(E−2)), so that the fastest pair stays and the slowest is slowed by the whole factor. It works without any
// training, up to somewhat less than factor times the original context. A checkpoint in another format says it with the
// new base alone.
func (s RoPEScaling) ntk(f []float64, headSize int) {
	if headSize == 2 {
		return // one pair, the fastest
	}
	for i := range f {
		f[i] *= math.Pow(s.Factor, -2*float64(i)/float64(headSize-2))
	}
}
