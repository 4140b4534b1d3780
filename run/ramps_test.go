package run

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/train/traintest"
)

// with returns a small configuration with some values replaced.
func with(t testing.TB, data string, overrides ...string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	cfg := traintest.Config(data)
	cfg.Train.Steps, cfg.Train.MicroBatch, cfg.Schedule.Warmup, cfg.Train.EvalEvery, cfg.Checkpoint.Every,
		cfg.Checkpoint.Keep = 14, 1, 0, 0, 1, 100
	if err := os.WriteFile(path, cfg.YAML(), 0o666); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, overrides)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// resumedAt copies a run as it was after a step, and takes it to its end.
func resumedAt(t testing.TB, run string, step int) *Result {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(run)); err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		var n int
		if _, err := fmt.Sscanf(filepath.Base(c), "step-%d", &n); err != nil || n > step {
			os.RemoveAll(c)
		}
	}
	r, err := Resume(context.Background(), Options{Dir: dir})
	if err != nil {
		t.Fatalf("resumed at step %d: %v", step, err)
	}
	if lines := readMetrics(t, dir); len(lines) != r.Step {
		t.Errorf("resumed at step %d: %d lines of metrics for %d steps", step, len(lines), r.Step)
	}
	return r
}

// everything is a run in which every counter of a phase differs from the steps: the batch and the length grow, and the
// rate warms up, decays, is at the peak again and decays again.
var everything = []string{
	"schedule.name=wsds", "schedule.branches=8", "schedule.warmup=2", "schedule.decay_fraction=0.3",
	"train.batch_ramp=64 over 1000 tokens", "train.length_warmup=8 over 10 steps", "train.noise_scale_every=3",
}

// Wherever a run is resumed, in a warmup, a decay or a ramp, it ends in the same bits.
func TestResumeInEveryPhase(t *testing.T) {
	data := traintest.Data(t)
	for _, c := range []struct {
		name      string
		overrides []string
		at        []int
	}{
		{"everything", everything, []int{1, 3, 5, 7, 8, 9, 11, 13}},
		{"stages", []string{"train.batch_ramp=64 until 300 tokens, " +
			"128 until 1000", "schedule.name=linear", "schedule.warmup=300 tokens"}, []int{4, 8}},
		{"inverse_sqrt", []string{"schedule.name=inverse_sqrt", "schedule.warmup=25%"}, []int{2, 8}},
		{"step", []string{"schedule.name=step", "schedule.branches=50%"}, []int{6, 8}},
		{"restarts", []string{"schedule.name=restarts"}, []int{5}},
		{"cyclic", []string{"schedule.name=cyclic", "train.batch_ramp=64 over 1000 tokens"}, []int{5}},
		{"power", []string{"schedule.name=power", "schedule.warmup=2"}, []int{5, 12}},
		{"wsd", []string{"schedule.name=wsd", "schedule.warmup=2", "schedule.decay_shape=exponential"},
			[]int{1, 5, 12}},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		want := mustRun(t, Options{Config: with(t, data, c.overrides...), Dir: dir})
		for _, step := range c.at {
			r := resumedAt(t, dir, step)
			if r.WeightsHash != want.WeightsHash || r.OptimizerHash != want.OptimizerHash || r.Tokens != want.Tokens ||
				math.Float64bits(r.NoiseScale) != math.Float64bits(want.NoiseScale) {
				t.Errorf("%s, resumed at step %d: weights %.12s, %d tokens, noise scale %v; uninterrupted "+
					"%.12s, %d, %v",
					c.name, step, r.WeightsHash, r.Tokens, r.NoiseScale, want.WeightsHash, want.Tokens, want.NoiseScale)
			}
		}
	}
}

// Up to the end of a branch, a wsds run is the wsd run of that length, bit for bit; after it the rate is the peak
// again.
func TestABranchOfWSDSIsAWSDRun(t *testing.T) {
	data, whole, alone := traintest.Data(t), filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{
		Config: with(t, data, "schedule.name=wsds", "train.steps=20", "schedule.branches=8", "schedule.warmup=2",
			"schedule.decay_fraction=0.4"), Dir: whole,
	})
	want := mustRun(t, Options{
		Config: with(t, data, "schedule.name=wsd", "train.steps=8", "schedule.warmup=2", "schedule.decay_fraction=0.4"),
		Dir:    alone,
	})
	lines := readMetrics(t, whole)
	if lr := lines[8]["lr"].(float64); lr != 3e-3 {
		t.Errorf("the rate of the step after the branch is %v, want the peak, 0.003", lr)
	}
	list, err := checkpoint.List(filepath.Join(whole, "checkpoints"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Step > 8 {
			os.RemoveAll(filepath.Join(filepath.Join(whole, "checkpoints"), e.Name))
		}
	}
	weights, _, info, err := checkpoint.Hash(filepath.Join(whole, "checkpoints"))
	if err != nil || info.Step != 8 || weights != want.WeightsHash {
		t.Errorf("at step %d the branch has weights %.12s, %v; the wsd run of 8 steps %.12s",
			info.Step, weights, err, want.WeightsHash)
	}
}
