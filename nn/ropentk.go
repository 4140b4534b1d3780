package nn

import "math"

// ntk is the scaling based on the neural tangent kernel ("NTK-aware", bloc97 2023; derived in arXiv 2309.00071 §3.1).
// The base θ becomes θ·s^(E/(E−2)), so that the fastest pair is unchanged and the slowest is slowed by the whole
// factor. It works without training, for somewhat less than factor times the original context. Other checkpoint
// formats express it by the new base.
func (s RoPEScaling) ntk(f []float64, headSize int) {
	if headSize == 2 {
		return // only one pair, the fastest
	}
	for i := range f {
		f[i] *= math.Pow(s.Factor, -2*float64(i)/float64(headSize-2))
	}
}
