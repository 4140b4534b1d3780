package tensor

import (
	"math"
	"slices"
)

// Dynamic8 returns the 256 numbers of the 8-bit dynamic format (Dettmers et al. 2021, arXiv 2110.02861) in ascending
// order: seven decades below 1, each with twice as many evenly spaced numbers as the one below it, plus 0 and 1.
// Signed numbers range from −0.993 to 1; unsigned ones have twice the resolution. Unlike a linear format, it keeps
// the relative precision of small numbers. A block of numbers is stored as multiples of its largest magnitude.
func Dynamic8(signed bool) [256]float32 {
	values := []float32{0, 1}
	for decade := range 7 {
		intervals, factor := 1<<decade, float32(math.Pow(10, float64(decade-6)))
		if !signed {
			intervals *= 2
		}
		// The interval bounds are evenly spaced from both ends of the decade and rounded once to float32, so that the
		// numbers equal those of other implementations to the last bit.
		step := (1 - float32(0.1)) / float32(intervals)
		bound := func(i int) float32 {
			if i < (intervals+1)/2 {
				return float32(float64(float32(0.1)) + float64(step)*float64(i))
			}
			return float32(1 - float64(step)*float64(intervals-i))
		}
		for i := range intervals {
			middle := (bound(i) + bound(i+1)) / 2 * factor
			values = append(values, middle)
			if signed {
				values = append(values, -middle)
			}
		}
	}
	slices.Sort(values)
	return [256]float32(values)
}
