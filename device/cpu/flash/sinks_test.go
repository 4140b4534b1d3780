package flash

import (
	"math"
	"testing"
)

// A query that sees no key has the weight of its sink alone, and without a sink no weight: not NaN.
func TestASinkOfNothing(t *testing.T) {
	none := math.Inf(-1)
	for _, c := range []struct{ m, l, sink, lse, factor float64 }{
		{-1e30, 0, none, none, 0},
		{-1e30, 0, 2, 2, 0},
		{0, 4, none, math.Log(4), 0.25},
		{0, 3, 0, math.Log(4), 0.25},
	} {
		lse, factor := sunk(c.m, c.l, c.sink)
		if math.Abs(lse-c.lse) > 1e-12 || math.IsNaN(lse) || math.Abs(factor-c.factor) > 1e-12 || math.IsNaN(factor) {
			t.Errorf("%v: log-sum-exp %v and factor %v", c, lse, factor)
		}
	}
}
