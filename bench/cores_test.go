package bench

import (
	"context"
	"math"
	"slices"
	"testing"
)

// The parts of a simulated step add up, and no number of cores is faster than an even share of their work.
func TestCoresShareOutAStep(t *testing.T) {
	o := Options{Shape: "demo", Precision: "fp32", Batch: 4, Context: 64}
	var begun []int
	threads := []int{1, 2, 32}
	r, err := Cores(context.Background(), o, threads, func(n int) { begun = append(begun, n) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(begun, threads) {
		t.Errorf("began with %v, want %v", begun, threads)
	}
	if r.Tokens != 4*64 || r.Tier == "" || len(r.Cases) != 3 {
		t.Fatalf("%+v", r)
	}
	for i, c := range r.Cases {
		sum := c.WorkMs + c.WaitMs + c.HandingMs + c.AloneMs
		if math.Abs(sum-c.StepMs) > 1e-6*sum || c.WorkMs <= 0 || c.WaitMs < 0 || c.AloneMs <= 0 {
			t.Errorf("%d cores: parts of %v ms in a step of %v: %+v", c.Threads, sum, c.StepMs, c)
		}
		if want := r.Cases[0].StepMs / c.StepMs; math.Abs(c.Speedup-want) > 1e-9 ||
			math.Abs(c.Efficiency*float64(c.Threads)-want) > 1e-9 {
			t.Errorf("%d cores: %+v, want a speed-up of %v", c.Threads, c, want)
		}
		if i > 0 && c.StepMs >= r.Cases[i-1].StepMs {
			t.Errorf("%d cores take %v ms, fewer %v", c.Threads, c.StepMs, r.Cases[i-1].StepMs)
		}
	}
	if one := r.Cases[0]; one.WaitMs > 1e-6 || one.HandingMs != 0 || one.WorkOfOne != 1 {
		t.Errorf("one core waits: %+v", one)
	}
}
