package bench

import (
	"slices"
	"testing"
	"time"

	"anneal/internal/isa"
)

// Every shape is measured and told, and what counts as operations cannot be done faster than about twice the peak:
// symmetric products take half of what they count.
func TestNewtonSchulzIsMeasured(t *testing.T) {
	var told []NewtonSchulzCase
	cases, err := NewtonSchulz(isa.Tiers()[0], 1, time.Millisecond, func(c NewtonSchulzCase) { told = append(told, c) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(told, cases) || len(cases) != len(newtonSchulzShapes) {
		t.Fatalf("told %v, returned %v", told, cases)
	}
	for i, c := range cases {
		if s := newtonSchulzShapes[i]; c.M != s[0] || c.N != s[1] || c.Threads != 1 || c.GFLOPS <= 0 ||
			c.FractionOfPeak <= 0 || c.FractionOfPeak > 2.5 {
			t.Errorf("shape %v: %+v", s, c)
		}
	}
}
