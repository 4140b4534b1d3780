package vec

import (
	"math"
	"testing"

	"anneal/internal/isa"
)

// elu(x) + 1 is positive and never NaN for a number, its slope is between 0 and 1, and NaN stays NaN.
func TestELU1AtItsEnds(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tier := range isa.Tiers() {
		for _, c := range []struct{ x, want, slope float32 }{
			{-inf, 0, 0}, {inf, inf, 1}, {nan, nan, nan}, {0, 1, 1}, {float32(math.Copysign(0, -1)), 1, 1},
			{-200, 0, 0}, {3e38, 3e38, 1}, {1, 2, 1}, {1e-40, 1, 1}, {-1e-40, 1, 1},
		} {
			for _, n := range []int{1, 8, 16, 37} {
				x, y, s := make([]float32, n), make([]float32, n), make([]float32, n)
				x[n-1] = c.x
				Float32(tier).ELU1(y, s, x)
				same := func(a, b float32) bool { return a == b || a != a && b != b }
				if !same(y[n-1], c.want) || !same(s[n-1], c.slope) {
					t.Errorf("%v: elu(%v) + 1 = %v with slope %v, want %v and %v",
						tier, c.x, y[n-1], s[n-1], c.want, c.slope)
				}
			}
		}
	}
}
