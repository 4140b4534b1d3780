package schedule

import "math"

// Cyclic rises from the final ratio to the peak and falls back, along lines, in every cycle (the triangular policy of
// Smith 2017, arXiv 1506.01186). It has no warmup, since every cycle begins with one.
type Cyclic struct {
	Ends   []int   // of the cycles, ascending
	Final  float64 // at both ends of each cycle, as a fraction of the peak
	Beyond int     // how many positions after the end of a cycle the final rate would be reached
}

// Factor returns the fraction of the peak at position t.
func (s Cyclic) Factor(t int) float64 {
	from, to := cycle(t, s.Ends)
	return s.Final + (1-s.Final)*(1-math.Abs(2*progress(t, from, to+s.Beyond)-1))
}
