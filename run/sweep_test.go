package run

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// SCH-6: a sweep leaves a run, its data and its configuration as they were, bit for bit, and the run goes on as it
// would have.
func TestASweepLeavesNothingBehind(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: with(t, data, "train.steps=4"), Dir: dir})
	edit(t, dir, "train.steps=6")
	cfg, err := Config(dir)
	if err != nil {
		t.Fatal(err)
	}
	run, set, text := contents(t, dir), contents(t, data), string(cfg.YAML())
	sweep := func() (rates, losses []float64) {
		err := Sweep(context.Background(),
			SweepOptions{Config: cfg, Low: 1e-6, High: 10, Steps: 15, OnStep: func(lr, loss float64) bool {
				rates, losses = append(rates, lr), append(losses, loss)
				return true
			}})
		if err != nil {
			t.Fatal(err)
		}
		return rates, losses
	}
	rates, losses := sweep()
	if contents(t, dir) != run || contents(t, data) != set || string(cfg.YAML()) != text {
		t.Error("a file of the run, of the data set, or the configuration changed")
	}
	if len(rates) != 15 || math.Abs(rates[0]/1e-6-1) > 1e-12 || math.Abs(rates[7]/math.Sqrt(1e-5)-1) > 1e-12 ||
		math.Abs(rates[14]/10-1) > 1e-12 {
		t.Errorf("rates %v, want from 1e-6 to 10 in equal ratios", rates)
	}
	if _, again := sweep(); len(again) != len(losses) || again[9] != losses[9] ||
		math.Abs(losses[0]-math.Log(320)) > 0.3 {
		t.Errorf("losses %v, then %v: not both of the initial weights", losses, again)
	}
	r, err := Resume(context.Background(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	undisturbed := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: with(t, data, "train.steps=4"), Dir: undisturbed})
	edit(t, undisturbed, "train.steps=6")
	want, err := Resume(context.Background(), Options{Dir: undisturbed})
	if err != nil || r.WeightsHash != want.WeightsHash {
		t.Errorf("resumed after a sweep: weights %.12s, without one %.12s, %v", r.WeightsHash, want.WeightsHash, err)
	}
}

// OnStep ends a sweep, and so does a loss that is not finite.
func TestASweepEnds(t *testing.T) {
	// which a sweep does without
	cfg := with(t, traintest.Data(t), "train.clip=0", "guard.spike_z=6", "guard.window=32",
		"train.batch_ramp=64 over 1000 tokens", "train.batch_ramp_lr=linear")
	n := 0
	o := SweepOptions{
		Config: cfg, Low: 1e-6, High: 1e-3, Steps: 10, OnStep: func(float64, float64) bool { n++; return n < 3 },
	}
	if err := Sweep(context.Background(), o); err != nil || n != 3 {
		t.Errorf("a sweep told to stop after 3 steps made %d, %v", n, err)
	}
	last := 0.0
	o = SweepOptions{
		Config: cfg, Low: 1e5, High: 2e5, Steps: 100,
		OnStep: func(_, loss float64) bool { n, last = n+1, loss; return true },
	}
	if n = 0; Sweep(context.Background(), o) != nil || n == 100 || !math.IsNaN(last) && !math.IsInf(last, 0) {
		t.Errorf("at absurd rates a sweep made %d of 100 steps; its last loss is %v", n, last)
	}
}

// The rates of a sweep are those it names: Adafactor's relative step, at most 1/√update, does not cut them.
func TestASweepOfAdafactorIsNotCapped(t *testing.T) {
	losses := func(relative string) (list []float64) {
		cfg := with(t, traintest.Data(t), "optimizer.name=adafactor", "optimizer.relative_step="+relative)
		err := Sweep(context.Background(),
			SweepOptions{Config: cfg, Low: 1e-3, High: 10, Steps: 12, OnStep: func(_, loss float64) bool {
				list = append(list, loss)
				return true
			}})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	a, b := losses("true"), losses("false")
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("step %d: loss %v with the relative step, %v without", i+1, a[i], b[i])
		}
	}
}

func TestASweepOfNothingIsRefused(t *testing.T) {
	cfg, on := config.Default(), func(_, _ float64) bool { return true }
	for want, o := range map[string]SweepOptions{
		"no configuration":       {Low: 1e-6, High: 1, Steps: 9, OnStep: on},
		"set OnStep":             {Config: cfg, Low: 1e-6, High: 1, Steps: 9},
		"rate 0 to 1":            {Config: cfg, High: 1, Steps: 9, OnStep: on},
		"rate -1 to -2":          {Config: cfg, Low: -1, High: -2, Steps: 9, OnStep: on},
		"rate 1 to 1\n":          {Config: cfg, Low: 1, High: 1, Steps: 9, OnStep: on},
		"rate 1 to +Inf":         {Config: cfg, Low: 1, High: math.Inf(1), Steps: 9, OnStep: on},
		"rate NaN to 1":          {Config: cfg, Low: math.NaN(), High: 1, Steps: 9, OnStep: on},
		"a sweep of 1 steps has": {Config: cfg, Low: 1e-6, High: 1, Steps: 1, OnStep: on},
	} {
		if err := Sweep(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
