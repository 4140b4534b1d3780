package schedule

import "math"

// WSD is warmup, stable, decay (Hu et al. 2024, arXiv 2404.06395). It holds the peak until the last Decay positions,
// which fall to the final ratio by some shape. Hägele et al. 2024 (arXiv 2405.18392) find 1−√x over 10–20 % of a run
// as good as a cosine of the same length. Before the decay the run does not depend on its length, so it can continue
// from any stable checkpoint. A decay longer than the positions after warmup starts at the end of warmup.
type WSD struct {
	Warmup, Steps, Decay int
	Final                float64 // at the end, as a fraction of the peak
	Shape                Shape
}

// Factor returns the fraction of the peak at position t.
func (s WSD) Factor(t int) float64 {
	if f, warming := warmup(t, s.Warmup); warming {
		return f
	}
	from := max(s.Steps-s.Decay, s.Warmup)
	if t <= from {
		return 1
	}
	return s.Final + (1-s.Final)*s.Shape.left(progress(t, from, s.Steps), s.Final)
}

// A Shape is the curve of a decay from 1 to 0 while its progress x goes from 0 to 1.
type Shape string

// The shapes.
const (
	ShapeLinear  Shape = "linear"              // 1 − x
	ShapeSqrt    Shape = "sqrt"                // 1 − √x
	ShapeCosine  Shape = "cosine"              // ½(1 + cos πx)
	ShapeShifted Shape = "shifted_exponential" // 2·½ˣ − 1, which ends at 0

	// ShapeExponential divides the rate by the same factor in each position, as MiniCPM does (Hu et al. 2024): the rate
	// is finalˣ of the peak, so that the final ratio must be above 0.
	ShapeExponential Shape = "exponential"
)

// left returns the value of the curve at progress x, for a rate that ends at the fraction final of the peak; an unknown
// Shape is linear.
func (s Shape) left(x, final float64) float64 {
	switch s {
	case ShapeSqrt:
		return 1 - math.Sqrt(x)
	case ShapeCosine:
		return 0.5 * (1 + math.Cos(math.Pi*x))
	case ShapeShifted:
		return 2*math.Exp2(-x) - 1
	case ShapeExponential:
		if final < 1 {
			return (math.Pow(final, x) - final) / (1 - final)
		}
	}
	return 1 - x
}
