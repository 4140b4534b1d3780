package run

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"anneal/dataset"
	"anneal/train"
	"anneal/train/traintest"
)

// The squared norm measured is that of a step of the first micro-batch alone, and measuring changes no bit of
// training.
func TestMeasuringNoiseChangesNothing(t *testing.T) {
	run := func(overrides ...string) (*train.Trainer, train.Event) {
		cfg := with(t, "random", append(overrides, "model.vocab=64", "precision=fp32")...)
		tr := trainerOf(t, cfg, 1)
		stats, err := tr.Step(context.Background(), dataset.NewRandom(64, cfg.Model.Context, 1))
		if err != nil {
			t.Fatal(err)
		}
		return tr, stats
	}
	plain, _ := run("train.micro_batch=2")
	measured, whole := run("train.micro_batch=2", "train.noise_scale_every=1")
	if hashes(plain) != hashes(measured) {
		t.Errorf("weights and state %v with the measurement, %v without", hashes(measured), hashes(plain))
	}
	_, first := run("train.micro_batch=2", "train.batch_tokens=64")
	var want train.NoiseScale
	want.Add(first.GradNorm*first.GradNorm, whole.GradNorm*whole.GradNorm, 64, 256)
	if got := measured.Position().Noise; math.Abs(got.Noise/want.Noise-1) > 1e-9 ||
		math.Abs(got.Signal/want.Signal-1) > 1e-9 {
		t.Errorf("measured %+v, from the norms of the first micro-batch alone and of the step %+v", got, want)
	}
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	r := mustRun(t, Options{Config: with(t, data, "train.noise_scale_every=2", "train.steps=6"), Dir: dir})
	lines, reported := readMetrics(t, dir), 0
	for _, l := range lines {
		if v, ok := l["noise_scale_tokens"].(float64); ok {
			reported++
			if l["step"].(float64) == 6 && v != r.NoiseScale {
				t.Errorf("the last line reports %v tokens, the result %v", v, r.NoiseScale)
			}
		}
	}
	if reported != 3 {
		t.Errorf("%d of 6 steps report a noise scale, want 3: every second one", reported)
	}
}
