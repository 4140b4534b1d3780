package schedule

// A Schedule gives the learning rate at position t (from 1) as a fraction of the peak.
type Schedule interface {
	Factor(t int) float64 // in [0, 1]; constant beyond the last position
}

// warmup rises linearly to the peak at t = w. It reports whether t is still in the warmup.
func warmup(t, w int) (float64, bool) {
	if t >= w {
		return 1, false
	}
	return float64(t) / float64(w), true
}

// progress returns the progress of t between from (0) and to (1).
func progress(t, from, to int) float64 {
	if t >= to {
		return 1
	}
	return float64(t-from) / float64(to-from)
}
