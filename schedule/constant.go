package schedule

// Constant stays at the peak after a linear warmup. It is for short experiments, and for runs from which other runs
// branch off to decay (WSD does both in one run). A run that ends at the peak rate ends with a higher loss than after
// a decay.
type Constant struct{ Warmup int }

// Factor returns the fraction of the peak at position t.
func (s Constant) Factor(t int) float64 {
	f, _ := warmup(t, s.Warmup)
	return f
}
