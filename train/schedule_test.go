package train

import (
	"fmt"
	"math"
	"testing"

	"anneal/dataset"
	"anneal/nn"
)

// rates are the fractions of the peak rate of all steps of a run.
func rates(t *testing.T, overrides ...string) (list []float64) {
	cfg := smallConfig(t, "data", append([]string{"train.steps=100"}, overrides...)...)
	s, at := NewSchedule(cfg), cfg.Position()
	for n := range cfg.Train.Steps {
		list = append(list, s.Factor(at(n+1)))
	}
	return list
}

// No schedule makes an update with the rate 0, also where the batch grows and where a run has several ends.
func TestNoUpdateIsWasted(t *testing.T) {
	for _, name := range []string{"cosine", "linear", "wsd", "wsds", "power", "restarts", "one_cycle"} {
		for _, ramp := range []string{"", "128 over 2000 tokens"} {
			more := []string{"schedule.name=" + name, "schedule.final_ratio=0", "schedule.warmup=10",
				"train.batch_ramp=" + ramp}
			list := rates(t, more...)
			for n, x := range list {
				if x <= 1e-6 {
					t.Fatalf("%v: the rate of step %d is %g of the peak", more, n+1, x)
				}
			}
			if last := list[99]; last > 0.03 {
				t.Errorf("%v: the rate of the last step is %g of the peak", more, last)
			}
		}
	}
}

// GPT-3's cosine ends after 260 of 300 billion tokens.
func TestHorizonEndsBeforeTheRun(t *testing.T) {
	list := rates(t, "schedule.horizon=87%", "schedule.warmup=1")
	if list[85] <= 0.1 || list[86] != 0.1 || list[99] != 0.1 {
		t.Errorf("rates %g, %g and %g of steps 86, 87 and 100", list[85], list[86], list[99])
	}
	whole := rates(t, "schedule.warmup=1", "train.steps=87")
	for n, x := range whole {
		if x != list[n] {
			t.Errorf("step %d: %g, %g in a run of that length", n+1, list[n], x)
		}
	}
}

// OLMo 2 stops after 3.9 of the 5 trillion tokens of its cosine.
func TestHorizonLiesBeyondTheRun(t *testing.T) {
	long := rates(t, "train.steps=125", "schedule.warmup=1")
	for n, x := range rates(t, "schedule.horizon=125", "schedule.warmup=1") {
		if x != long[n] {
			t.Errorf("step %d: %g, %g in the longer run", n+1, x, long[n])
		}
	}
}

// Weight decay falls to where the step after the last would have none; a timescale decides its level.
func TestWeightDecayOverARun(t *testing.T) {
	cfg := smallConfig(t, "data", "train.steps=100", "optimizer.lr=0.01", "optimizer.decay_timescale=0.25",
		"schedule.weight_decay=linear")
	if got := cfg.Optimizer.WeightDecay; math.Abs(got-4) > 1e-12 {
		t.Errorf("weight decay %g, want 1 / (0.01 · 25) = 4", got)
	}
	if got := cfg.Optimizer.Groups.Matrix.WeightDecay; math.Abs(got-4) > 1e-12 {
		t.Errorf("weight decay of matrices %g, want 4", got)
	}
	for n, want := range map[int]float64{1: 1, 51: 0.5, 100: 0.01, 101: 0} {
		if got := DecayLeft(cfg, n); math.Abs(got-want) > 1e-12 {
			t.Errorf("update %d has %g of the weight decay, want %g", n, got, want)
		}
	}
	cfg.Schedule.WeightDecay = "constant"
	if DecayLeft(cfg, 90) != 1 {
		t.Error("a constant weight decay changes")
	}
}

// A momentum that warms up begins at 0.85, and ends as the optimizer's own, which 0 stands for. A run with it is
// another run, until its momentum is the same from the first step on.
func TestMomentumWarmsUp(t *testing.T) {
	cfg := smallConfig(t, "data", "optimizer.name=muon", "schedule.momentum_warmup=10")
	for n, want := range map[int]float64{1: 0.86, 5: 0.9, 9: 0.94, 10: 0, 11: 0} {
		if got := Momentum(cfg, n); math.Abs(got-want) > 1e-12 {
			t.Errorf("update %d has the momentum %g, want %g", n, got, want)
		}
	}
	cfg.Optimizer.Momentum = 0.8
	if got := Momentum(cfg, 1); got != 0 {
		t.Errorf("a momentum of 0.8 starts at %g", got)
	}
	var ends [3][2]string
	for i, steps := range []int{0, 1, 6} {
		cfg := smallConfig(t, "data", "optimizer.name=muon", "model.vocab=64",
			fmt.Sprintf("schedule.momentum_warmup=%d", steps))
		tr := trainerOf(t, cfg, 1)
		src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, cfg.Seed)
		for range 4 {
			if _, err := tr.Step(t.Context(), src); err != nil {
				t.Fatal(err)
			}
		}
		ends[i] = hashes(tr)
	}
	if ends[0] != ends[1] || ends[0] == ends[2] {
		t.Errorf("weights after 4 steps without warmup, with one of a step and with one of 6: %v", ends)
	}
}

// Two runs by the power of the position have the same rates until the shorter one decays, from warmups of their own.
func TestPowerDoesNotDependOnTheLength(t *testing.T) {
	short := rates(t, "schedule.name=power", "train.steps=1000")
	long := rates(t, "schedule.name=power", "train.steps=5000")
	for n := range 800 {
		if short[n] != long[n] {
			t.Fatalf("step %d: %g of the peak in 1,000 steps, %g in 5,000", n+1, short[n], long[n])
		}
	}
}

// A weight decay that falls to 0 shrinks weights less than one that stays, and the first step alike.
func TestWeightDecayFallsInARun(t *testing.T) {
	size := func(schedule string, n int) (sum float64) {
		tr, src := optimizerTrainer(t, "adamw", "optimizer.weight_decay=5", "train.steps=10", "schedule.warmup=1",
			"schedule.weight_decay="+schedule)
		steps(t, tr, src, n)
		for _, p := range tr.model.Params() {
			if p.Role == nn.Matrix {
				for i := range p.Value.Len() {
					sum += p.Value.Float64(i) * p.Value.Float64(i)
				}
			}
		}
		return sum
	}
	if same, falls := size("constant", 1), size("linear", 1); same != falls {
		t.Errorf("after a step the squares of the matrices sum to %v and %v", same, falls)
	}
	if same, falls := size("constant", 10), size("linear", 10); falls <= same {
		t.Errorf("after the run the squares of the matrices sum to %v with a constant decay, %v with a falling one",
			same, falls)
	}
}
