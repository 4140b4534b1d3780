package lab

import (
	"math"
	"testing"
)

// Quantiles of the tables in every textbook, and closed forms for one and two degrees of freedom.
func TestStudent(t *testing.T) {
	for _, c := range []struct{ freedom, p, want float64 }{
		{1, 0.05, 12.7062}, {2, 0.05, 4.30265}, {4, 0.05, 2.77645}, {9, 0.05, 2.26216}, {30, 0.01, 2.75000},
		{1000, 0.05, 1.96234},
	} {
		if got := tQuantile(c.p, c.freedom); math.Abs(got-c.want) > 1e-4*c.want {
			t.Errorf("t of %v with %v degrees of freedom is %.5f, want %.5f", c.p, c.freedom, got, c.want)
		}
	}
	for _, x := range []float64{0, 0.1, 1, 5, 100} {
		if got, want := tTail(x, 1), 1-2/math.Pi*math.Atan(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("beyond %v with one degree: %v, want %v", x, got, want)
		}
		if got, want := tTail(x, 2), 1-x/math.Sqrt(2+x*x); math.Abs(got-want) > 1e-12 {
			t.Errorf("beyond %v with two degrees: %v, want %v", x, got, want)
		}
	}
}

func TestHolm(t *testing.T) {
	got := holm([]float64{0.01, 0.04, math.NaN(), 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, math.NaN(), 0.06, 0.02} {
		if math.Abs(got[i]-want) > 1e-12 || math.IsNaN(got[i]) != math.IsNaN(want) {
			t.Errorf("value %d is %v, want %v", i, got[i], want)
		}
	}
}
