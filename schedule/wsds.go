package schedule

// WSDS is WSD-S (Wen et al. 2024, arXiv 2410.05192): one run that decays several times, each time to a model worth
// keeping, and goes on from there at the peak. Up to the end of a branch it decays like a WSD run of that length. The
// models on the way cost no run of their own; a single WSD run spends its decay once and is a little better at its end.
type WSDS struct {
	Warmup int
	Ends   []int   // where each branch ends, ascending
	Decays []int   // how long before its end each branch decays; not before the end of the one before it
	Final  float64 // at the end of each branch, as a fraction of the peak
	Shape  Shape
}

// Factor returns the fraction of the peak at position t.
func (s WSDS) Factor(t int) float64 {
	for i, end := range s.Ends {
		if t <= end || i == len(s.Ends)-1 {
			return WSD{Warmup: s.Warmup, Steps: end, Decay: s.Decays[i], Final: s.Final, Shape: s.Shape}.Factor(t)
		}
	}
	return Constant{s.Warmup}.Factor(t)
}
