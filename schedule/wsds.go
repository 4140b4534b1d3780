package schedule

// WSDS is WSD-S (Wen et al. 2024, arXiv 2410.05192): one run that decays several times, each time to a model worth
// keeping, and then continues at the peak rate. Up to the end of a branch it decays like a WSD run of that length. The
// intermediate models need no runs of their own. A single WSD run, with one decay, is a little better at its end.
type WSDS struct {
	Warmup int
	Ends   []int   // ends of the branches, ascending
	Decays []int   // length of each branch's decay; a decay may not start before the end of the previous branch
	Final  float64 // at the end of each branch, as a fraction of the peak
	Beyond int     // how many positions after the end of a branch the final rate would be reached
	Shape  Shape
}

// Factor returns the fraction of the peak at position t.
func (s WSDS) Factor(t int) float64 {
	for i, end := range s.Ends {
		if t <= end || i == len(s.Ends)-1 {
			return WSD{
				Warmup: s.Warmup, Steps: end + s.Beyond, Decay: s.Decays[i] + s.Beyond, Final: s.Final, Shape: s.Shape,
			}.Factor(t)
		}
	}
	return Constant{s.Warmup}.Factor(t)
}
