package schedule

// Constant stays at the peak after a linear warmup. For short experiments, and for runs that branch off to decay later
// (WSD does both in one). A run that ends at the peak rate ends with a loss that a decay would still lower.
type Constant struct{ Warmup int }

// Factor returns the fraction of the peak at position t.
func (s Constant) Factor(t int) float64 {
	f, _ := warmup(t, s.Warmup)
	return f
}
