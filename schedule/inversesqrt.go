package schedule

import "math"

// InverseSqrt falls as √(W/t) after a warmup of W (Vaswani et al. 2017, arXiv 1706.03762), but not below the floor.
// It does not need the length in advance; if the length is known, WSD reaches a lower loss.
type InverseSqrt struct {
	Warmup int
	Floor  float64 // as a fraction of the peak
}

// Factor returns the fraction of the peak at position t.
func (s InverseSqrt) Factor(t int) float64 {
	if f, warming := warmup(t, s.Warmup); warming {
		return f
	}
	return max(math.Sqrt(float64(max(s.Warmup, 1))/float64(t)), s.Floor)
}
