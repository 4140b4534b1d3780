package schedule

import "math"

// Restarts is a cosine with warm restarts (SGDR: Loshchilov & Hutter 2016, arXiv 1608.03983). It falls from the peak
// to the final ratio several times; the end of each cycle is a model worth keeping. Cycles that grow by a factor of 2,
// as the paper has them, end at 1/7, 3/7 and all of a run.
type Restarts struct {
	Warmup int
	Ends   []int   // of the cycles, ascending
	Final  float64 // at the end of each cycle, as a fraction of the peak
	Beyond int     // how many positions after the end of a cycle the final rate would be reached
}

// Factor returns the fraction of the peak at position t.
func (s Restarts) Factor(t int) float64 {
	if f, warming := warmup(t, s.Warmup); warming {
		return f
	}
	from, to := cycle(t, s.Ends)
	r := progress(t, max(from, s.Warmup), to+s.Beyond)
	return s.Final + (1-s.Final)*0.5*(1+math.Cos(math.Pi*r))
}

// cycle returns the end of the previous cycle and the end of the cycle of t. Beyond the last cycle it returns those of
// the last.
func cycle(t int, ends []int) (from, to int) {
	for i, end := range ends {
		if to = end; t <= end || i == len(ends)-1 {
			break
		}
		from = end
	}
	return from, to
}
