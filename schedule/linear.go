package schedule

// Linear falls from the peak along a line (Defazio et al. 2023, arXiv 2310.07831; Bergsma et al. 2025, arXiv 2502.15938,
// find decay to zero best where the length is known): final + (1−final)·(1−r), r the progress after warmup. The length
// must be known in advance.
type Linear struct {
	Warmup, Steps int
	Final         float64 // at the end, as a fraction of the peak
}

// Factor returns the fraction of the peak at position t.
func (s Linear) Factor(t int) float64 {
	if f, warming := warmup(t, s.Warmup); warming {
		return f
	}
	return s.Final + (1-s.Final)*(1-progress(t, s.Warmup, s.Steps))
}
