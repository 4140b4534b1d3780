package schedule

import "math"

// Step drops by the same factor after each of some positions, and is at the final ratio after the last one. DeepSeek
// LLM (2024, arXiv 2401.02954) drops to 31.6 % after 80 % of a run and to 10 % after 90 %. Before its first drop a run
// does not depend on its length.
type Step struct {
	Warmup int
	At     []int   // the last positions before a fall, ascending
	Final  float64 // after the last fall, as a fraction of the peak
}

// Factor returns the fraction of the peak at position t.
func (s Step) Factor(t int) float64 {
	if f, warming := warmup(t, s.Warmup); warming {
		return f
	}
	falls := 0
	for _, at := range s.At {
		if t > at {
			falls++
		}
	}
	if falls == 0 {
		return 1
	}
	return math.Pow(s.Final, float64(falls)/float64(len(s.At)))
}
