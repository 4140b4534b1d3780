package schedule

// Constant stays at the peak after a linear warmup.
type Constant struct{ Warmup int } // updates

// Factor returns the fraction of the peak at update t.
func (s Constant) Factor(t int) float64 {
	f, _ := warmup(t, s.Warmup)
	return f
}
