package schedule

import "math"

// Power falls with a power of the position after warmup, and at the end of the run it decays to the final ratio (Shen
// et al. 2024, arXiv 2408.13359). Like WSD it does not depend on the length until that last decay, and a rate that
// suits short runs suits long ones. The rate at the end of the warmup is the configured one; the paper's rule that
// derives it from the batch holds for its own models.
type Power struct {
	Warmup, Steps, Decay int
	Final                float64 // at the end, as a fraction of the peak
	Shape                Shape
}

// powerExponent is the exponent of the paper.
const powerExponent = -0.51

// Factor returns the fraction of the peak at position t.
func (s Power) Factor(t int) float64 {
	if f, warming := warmup(t, s.Warmup); warming {
		return f
	}
	from := max(s.Steps-s.Decay, s.Warmup)
	level := math.Pow(float64(min(t, from))/float64(max(s.Warmup, 1)), powerExponent)
	if t <= from {
		return level
	}
	final := min(s.Final, level)
	return final + (level-final)*s.Shape.left(progress(t, from, s.Steps), final/level)
}
