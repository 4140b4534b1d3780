package schedule

import "math"

// Sweep rises exponentially from Low to High over Steps positions, for a learning-rate range test (Smith 2015,
// arXiv 1506.01186).
type Sweep struct {
	Low, High float64 // fractions of the peak, positive
	Steps     int     // at least 2
}

// Factor returns the fraction of the peak at position t. Unlike that of other schedules it may be above 1.
func (s Sweep) Factor(t int) float64 {
	return s.Low * math.Pow(s.High/s.Low, float64(t-1)/float64(s.Steps-1))
}
