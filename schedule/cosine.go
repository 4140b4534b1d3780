package schedule

import "math"

// Cosine falls from the peak along half a cosine wave (Loshchilov & Hutter 2016, arXiv 1608.03983): final +
// (1−final)·½(1+cos πr), where r is the progress after warmup. The usual final ratio is 0.1. The length must be known
// in advance; use WSD to be able to continue from any point.
type Cosine struct {
	Warmup, Steps int
	Final         float64 // at the end, as a fraction of the peak
}

// Factor returns the fraction of the peak at position t.
func (s Cosine) Factor(t int) float64 {
	if f, warming := warmup(t, s.Warmup); warming {
		return f
	}
	r := progress(t, s.Warmup, s.Steps)
	return s.Final + (1-s.Final)*0.5*(1+math.Cos(math.Pi*r))
}
