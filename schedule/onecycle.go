package schedule

import "math"

// OneCycle rises from a 25th of the peak along half a cosine wave, and falls from there to the final ratio along
// another (Smith 2018, arXiv 1803.09820, with cosines instead of lines, as is usual). The rise takes 30 % of a run, and
// the rate ends far below where it began: 4e-6 of the peak by default.
type OneCycle struct {
	Warmup, Steps int     // the rise ends at Warmup
	Final         float64 // at the end, as a fraction of the peak
}

// cycleStart is the rate at the beginning of OneCycle.
const cycleStart = 1.0 / 25

// Factor returns the fraction of the peak at position t.
func (s OneCycle) Factor(t int) float64 {
	wave := func(from, to, x float64) float64 { return from + (to-from)*0.5*(1-math.Cos(math.Pi*x)) }
	if t < s.Warmup {
		return wave(cycleStart, 1, progress(t, 1, s.Warmup))
	}
	return wave(1, s.Final, progress(t, s.Warmup, s.Steps))
}
