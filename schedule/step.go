package schedule

import "math"

// Step falls at once after each of some positions, by the same factor, so that it is at the final ratio after the last.
// Falls after 80 % and 90 % of a run to a tenth are those of DeepSeek LLM (2024, arXiv 2401.02954): 31.6 % and 10 %.
// Before its first fall a run does not depend on its length.
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
