package train

import (
	"context"
	"math"
	"testing"

	"anneal/dataset"
	"anneal/internal/filetest"
)

// weightsOf copies all weights, as float64.
func weightsOf(t *Trainer) []float64 {
	var w []float64
	for _, p := range t.Model().Params() {
		for i := range p.Value.Len() {
			w = append(w, p.Value.Float64(i))
		}
	}
	return w
}

// After every step the average is the sum of the initial and all later weights, each with the weight that the decays
// leave it, computed in one go in float64.
func TestMovingAverageIsTheWeightedSum(t *testing.T) {
	p := loadParity(t)
	for policy, tolerance := range map[string]float64{"fp32": 2e-7, "bf16_sr": 2e-7, "fp64": 1e-14} {
		tr, src := parityTrainer(t, p, 0, policy, 1, 4)
		if err := withAverage(tr, 0.75); err != nil { // reached after 26 updates: 27/36
			t.Fatal(err)
		}
		history := [][]float64{weightsOf(tr)}
		for step := 1; step <= 40; step++ {
			if _, err := tr.Step(context.Background(), src); err != nil {
				t.Fatal(err)
			}
			history = append(history, weightsOf(tr))
			want := make([]float64, len(history[0]))
			left := 1.0
			for k := step; k >= 0; k-- {
				share := left
				if k > 0 {
					d := min(0.75, float64(1+k)/float64(10+k))
					share, left = left*(1-d), left*d
				}
				for i, w := range history[k] {
					want[i] += share * w
				}
			}
			at := 0
			for n := range tr.average.values {
				x := &tr.average.values[n]
				for i := range x.Len() {
					if got := x.Float64(i); math.Abs(got-want[at]) > tolerance*(1+math.Abs(want[at])) {
						t.Fatalf("%s: step %d, tensor %d, element %d: %v, want %v", policy, step, n, i, got, want[at])
					}
					at++
				}
			}
		}
	}
}

// Weights that a resumed run no longer trains equal their average from then on, and the others keep theirs.
func TestAverageOfWeightsThatAreFrozenLater(t *testing.T) {
	tr, src := parityTrainer(t, loadParity(t), 0, "fp32", 1, 4)
	if err := withAverage(tr, 0.75); err != nil {
		t.Fatal(err)
	}
	step := func() {
		if _, err := tr.Step(context.Background(), src); err != nil {
			t.Fatal(err)
		}
	}
	step()
	before := tr.average.values[1].Float64(0)
	tr.updated[0].lr = 0
	if err := tr.Restore(tr.State()); err != nil {
		t.Fatal(err)
	}
	if after := tr.average.values[1].Float64(0); after != before {
		t.Errorf("the average of a trained weight was %v and is %v", before, after)
	}
	step()
	w, a := &tr.updated[0].Value, &tr.average.values[0]
	for i := range a.Len() {
		if a.Float64(i) != w.Float64(i) {
			t.Fatalf("element %d of the average is %v, of the frozen weight %v", i, a.Float64(i), w.Float64(i))
		}
	}
}

// withAverage gives a trainer that has none an average.
func withAverage(tr *Trainer, decay float64) error {
	tr.cfg.Average.EMA = decay
	bytes := int64(0)
	for _, p := range tr.Model().Params() {
		bytes += int64(p.Grad.Bytes() + 64)
	}
	arenas, err := newArenas(tr.dev, []Part{{WeightAverage, bytes}})
	if err != nil {
		return err
	}
	tr.arenas = append(tr.arenas, arenas...)
	tr.average = layoutAverage(decay, arenas[0], tr.params)
	tr.StartAverage()
	return nil
}

func TestAveragingStepAllocatesNothing(t *testing.T) {
	tr, _ := parityTrainer(t, loadParity(t), 0, "bf16", 2, 2)
	if err := withAverage(tr, 0.999); err != nil {
		t.Fatal(err)
	}
	tr.batch.ZLoss = 1e-4
	src := dataset.NewRandom(64, 16, 1)
	step := func() {
		if _, err := tr.Step(context.Background(), src); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := filetest.AllocsPerRun(10, step); n != 0 {
		t.Errorf("%v allocations per step, want 0", n)
	}
}
