package optim

import (
	"math"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// With the loss a/2·(w − b)² gradient descent comes to rest where the loss and the penalty λ/2·F·(w − s)² pull alike.
func TestEWCRestsBetweenBothTasks(t *testing.T) {
	const a, b, lambda = 0.5, 3.0, 2.0
	start, importance := []float64{1, 1, 1, -2}, []float64{0, 0.25, 1e6, 1}
	x := newParameter(t, isa.Tiers()[0], tensor.F64, EWC{SGD{}, lambda}, start)
	if n := len(x.state); n != 2 || x.state[0].Name != EWCStart || x.state[1].Name != EWCImportance {
		t.Fatalf("state %+v", x.state)
	}
	fill(&x.state[0].Tensor, start, 1)
	fill(&x.state[1].Tensor, importance, 1)
	g := make([]float64, len(start))
	for step := range 400 {
		for i := range g {
			g[i] = a * (x.Value.Float64(i) - b)
		}
		x.step(g, Step{T: step + 1, LR: 0.1})
	}
	for i, f := range importance {
		want := (a*b + lambda*f*start[i]) / (a + lambda*f)
		if got := x.Value.Float64(i); math.Abs(got-want) > 1e-6 {
			t.Errorf("importance %g: rests at %v, want %v", f, got, want)
		}
	}
}

// Weights without importance go where the rule alone takes them, bit for bit.
func TestEWCLeavesTheRuleAlone(t *testing.T) {
	start, g := []float64{1, -2, 3, 0.5}, []float64{0.1, 0.2, -0.3, 0.4}
	rule := AdamW{0.9, 0.95, 1e-8}
	held := newParameter(t, isa.Tiers()[0], tensor.F32, EWC{rule, 7}, start)
	plain := newParameter(t, isa.Tiers()[0], tensor.F32, rule, start)
	for step := 1; step <= 5; step++ {
		held.step(g, Step{T: step, LR: 0.01, Decay: 0.1})
		plain.step(g, Step{T: step, LR: 0.01, Decay: 0.1})
	}
	for i := range start {
		if held.Value.Float64(i) != plain.Value.Float64(i) {
			t.Errorf("weight %d is %v, by the rule alone %v", i, held.Value.Float64(i), plain.Value.Float64(i))
		}
	}
}
