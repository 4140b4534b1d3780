package schedule

// Linear falls linearly from the peak: final + (1−final)·(1−r), where r is the progress after warmup (Defazio et al.
// 2023, arXiv 2310.07831). Bergsma et al. 2025 (arXiv 2502.15938) find linear decay to zero best if the length is
// known. The length must be known in advance.
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
