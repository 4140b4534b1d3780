package optim

import (
	"fmt"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// scheduleFreeSteps is ten steps of the authors' implementation (testdata/make_schedulefree.py).
type scheduleFreeSteps struct {
	Shape     []int
	Start     []float64
	Gradients [][]float64 // [step][element]
	Cases     []struct {
		Name                  string
		LR, Beta1, Beta2, Eps float64
		WeightDecay           float64 `json:"weight_decay"`
		Warmup                int
		Y, X                  [][]float64 // after each step
	}
}

// Ten steps have the weights at which the authors' implementation takes gradients, and the same average.
func TestScheduleFreeMatchesTheOriginal(t *testing.T) {
	var f scheduleFreeSteps
	loadJSON(t, "testdata/schedulefree.json", &f)
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		relative, absolute := 1e-12, 1e-14
		if dtype == tensor.F32 {
			relative, absolute = 1e-5, 1e-6
		}
		for _, c := range f.Cases {
			o := ScheduleFree{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps, Warmup: c.Warmup}
			p := newParameter(t, tier, dtype, o, f.Start, f.Shape...)
			for i, g := range f.Gradients {
				warm := min(1, float64(i+1)/float64(max(c.Warmup, 1)))
				p.step(g, Step{T: i + 1, LR: c.LR * warm, Decay: c.WeightDecay})
				near(t, fmt.Sprintf("%s: step %d: y", c.Name, i+1), &p.Value, c.Y[i], relative, absolute)
				near(t, fmt.Sprintf("%s: step %d: x", c.Name, i+1), &p.state[0].Tensor, c.X[i], relative, absolute)
			}
		}
	})
}

// The share of a step in the average is its weight over the sum of all so far, and 1/t without a warmup.
func TestSharesOfAWarmupAreItsSquares(t *testing.T) {
	for _, warmup := range []int{0, 1, 2, 7} {
		sum := 0.0
		for step := 1; step <= 20; step++ {
			warm := min(1, float64(step)/float64(max(warmup, 1)))
			sum += warm * warm
			if got, want := (ScheduleFree{Warmup: warmup}).share(step), warm*warm/sum; got < want*(1-1e-14) ||
				got > want*(1+1e-14) {
				t.Errorf("warmup %d, step %d: %v, want %v", warmup, step, got, want)
			}
		}
	}
}
