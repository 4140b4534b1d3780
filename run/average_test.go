package run

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/device/cpu"
	"anneal/train/traintest"
)

// A run may begin to average at any time, and stop; neither is silent.
func TestAverageTurnedOnAndOff(t *testing.T) {
	cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Train.EvalTokens = 4, 1, 256
	mustRun(t, Options{Config: cfg, Dir: dir})
	for _, c := range []struct {
		set  string
		says string
	}{{"average.ema=0.99", "begins with the weights of step 4"}, {"average.ema=0", "average.ema: 0.99 → 0"}} {
		steps, _ := Config(dir)
		edit(t, dir, c.set, "train.steps="+map[int]string{4: "6", 6: "8"}[steps.Train.Steps])
		var said []string
		if _, err := Resume(context.Background(), Options{
			Dir: dir, Warn: func(s string) { said = append(said, s) },
		}); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(said, "\n"); !strings.Contains(text, c.says) {
			t.Errorf("%s: said %q", c.set, text)
		}
	}
}

// The mean of checkpoints is that of their weights, element for element in float64, and can be used as a run.
func TestAverageOfCheckpoints(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	dir, out := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "mean")
	cfg.Train.Steps, cfg.Checkpoint.Every, cfg.Checkpoint.Keep, cfg.Schedule.Warmup = 8, 2, 10, 1
	mustRun(t, Options{Config: cfg, Dir: dir})
	var want []float64
	for _, step := range []string{"4", "6", "8"} {
		copied := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		for _, later := range []string{"6", "8"} {
			if later > step {
				os.RemoveAll(filepath.Join(copied, "checkpoints", "step-0000000"+later))
			}
		}
		for i, w := range openedWeights(t, copied) {
			if step == "4" {
				want = append(want, 0)
			}
			want[i] += w
		}
	}
	r, err := AverageCheckpoints(dir, 3, out, false)
	if err != nil || !slices.Equal(r.Steps, []int64{4, 6, 8}) {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, got := range openedWeights(t, out) {
		if w := float64(float32(want[i] / 3)); got != w {
			t.Fatalf("weight %d of the mean is %v, want %v", i, got, w)
		}
	}
	for from, says := range map[string]string{
		out: "it holds only those that `anneal ckpt average` wrote", dir: "`anneal ckpt average " + dir + " --last 3",
	} {
		_, err := OpenWeights(from, WeightOptions{Average: true})
		if err == nil || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "--last") != (from == dir) {
			t.Errorf("the moving average of %s: %v", from, err)
		}
	}
	again, err := AverageCheckpoints(dir, 3, filepath.Join(t.TempDir(), "mean"), false)
	if err != nil || again.WeightsHash != r.WeightsHash {
		t.Errorf("made again it has hash %v, %v; the first %v", again, err, r.WeightsHash)
	}
	for n, says := range map[int]string{
		-1: "--last from 2 to 4", 1: "takes two checkpoints or more, not 1\n  try --last from 2 to 4",
		5: "checkpoint.keep",
	} {
		if _, err := AverageCheckpoints(dir, n, filepath.Join(t.TempDir(), "x"), false); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("the last %d: %v, want it to say %q", n, err, says)
		}
	}
	if _, err := AverageCheckpoints(dir, 2, out, false); err == nil ||
		!strings.Contains(err.Error(), ErrExists.Error()) {
		t.Errorf("onto a run: %v", err)
	}
	if err := os.Truncate(filepath.Join(dir, "checkpoints", "step-00000006", "model.safetensors"), 100); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "y")
	if _, err := AverageCheckpoints(dir, 2, nowhere, false); err == nil ||
		!strings.Contains(err.Error(), "ckpt verify") || Exists(nowhere) {
		t.Errorf("of a damaged checkpoint: %v, a run was made: %v", err, Exists(nowhere))
	}
}

// openedWeights returns the weights of the newest checkpoint of a run.
func openedWeights(t *testing.T, dir string) []float64 {
	t.Helper()
	var w []float64
	for _, p := range loaded(t, dir).Model.Params() {
		for i := range p.Value.Len() {
			w = append(w, p.Value.Float64(i))
		}
	}
	return w
}

// loaded returns the weights of the run in dir, until the test ends.
func loaded(t *testing.T, dir string) *Weights {
	t.Helper()
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dev.Close)
	w, err := OpenWeights(dir, WeightOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	if err := w.Load(dev); err != nil {
		t.Fatal(err)
	}
	return w
}
