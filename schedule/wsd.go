package schedule

import "math"

// WSD is warmup, stable, decay (Hu et al. 2024, arXiv 2404.06395): the peak is held until the last Decay updates, which
// fall to the final ratio, linearly or as 1−√x (Hägele et al. 2024, arXiv 2405.18392). Until the decay begins the run
// does not depend on its length, so it can be continued from any stable checkpoint. A decay longer than what warmup
// leaves begins where warmup ends.
type WSD struct {
	Warmup, Steps, Decay int     // updates
	Final                float64 // at the last update, as a fraction of the peak
	Sqrt                 bool    // 1−√x instead of 1−x
}

// Factor returns the fraction of the peak at update t.
func (s WSD) Factor(t int) float64 {
	if f, warming := warmup(t, s.Warmup); warming {
		return f
	}
	from := max(s.Steps-s.Decay, s.Warmup)
	if t <= from {
		return 1
	}
	x := progress(t, from, s.Steps)
	if s.Sqrt {
		x = math.Sqrt(x)
	}
	return s.Final + (1-s.Final)*(1-x)
}
