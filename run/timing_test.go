package run

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anneal/plan"
	"anneal/train"
	"anneal/train/traintest"
)

// A run ends with what its steps took by phase, beside what was predicted, and keeps it in its directory.
func TestARunComparesItselfWithItsPlan(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "train.steps=6")
	dir := filepath.Join(t.TempDir(), "run")
	p := &plan.Foresight{Bytes: 1 << 20, Time: &plan.Time{Step: 2, Phases: map[string]float64{"forward": 1}}}
	r, err := Run(context.Background(), Options{Config: cfg, Dir: dir, Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "timing.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kept Timing
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	for _, x := range []Timing{r.Timing, kept} {
		if x.Steps != 5 || x.Step.Predicted != 2 || x.PeakBytes.Predicted != 1<<20 || x.PeakBytes.Actual <= 0 {
			t.Errorf("%+v", x)
		}
		sum := 0.0
		for p := range train.Phases {
			c := x.Phases[p.String()]
			if p != train.Reading && !(c.Actual > 0) {
				t.Errorf("%v took %v s", p, c.Actual)
			}
			sum += float64(c.Actual)
		}
		if math.Abs(sum-float64(x.Step.Actual)) > 1e-9 || x.Phases["forward"].Predicted != 1 {
			t.Errorf("phases of %v s make a step of %v: %+v", sum, x.Step.Actual, x.Phases)
		}
		if x.Memory[0].Name != train.Parameters || len(x.Memory) < 6 {
			t.Errorf("memory %+v", x.Memory)
		}
		for i, m := range x.Memory { // what was used of arenas is what was planned, and each kind stands there once
			if !(m.Predicted >= 0) || m.Actual > m.Predicted || m.Name == train.Parameters && m.Actual != m.Predicted ||
				slices.ContainsFunc(x.Memory[:i], func(o MemoryPart) bool { return o.Name == m.Name }) {
				t.Errorf("%+v in %+v", m, x.Memory)
			}
		}
		if off := x.Step.Off(); math.Abs(off-(2/sum-1)) > 1e-6*math.Abs(off) {
			t.Errorf("off by %v", off)
		}
	}
}

// The time left is the predicted one until steps are measured, and then the measured one.
func TestTheTimeLeftIsPredictedAndThenMeasured(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "train.steps=6", "train.eval_every=0")
	p := &plan.Foresight{Time: &plan.Time{Step: 1000, Phases: map[string]float64{"forward": 1000}}}
	var left []float64
	progress := func(e train.Event) { left = append(left, e.ETA.Seconds()) }
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := Run(context.Background(), Options{Config: cfg, Dir: dir, Plan: p, OnProgress: progress}); err != nil {
		t.Fatal(err)
	}
	if len(left) != 6 || left[0] < 5000 || left[1] > 500 || left[5] != 0 {
		t.Errorf("%v seconds are left after each step", left)
	}
}
