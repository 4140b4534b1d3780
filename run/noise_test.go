package run

import (
	"context"
	"path/filepath"
	"testing"

	"anneal/dataset"
	"anneal/train"
	"anneal/train/traintest"
)

// Measuring changes no bit of training, and what was measured last is the result.
func TestMeasuringNoiseChangesNothing(t *testing.T) {
	run := func(overrides ...string) *train.Trainer {
		cfg := with(t, "random", append(overrides, "model.vocab=64", "precision=fp32")...)
		tr := trainerOf(t, cfg, 1)
		if _, err := tr.Step(context.Background(), dataset.NewRandom(64, cfg.Model.Context, 1)); err != nil {
			t.Fatal(err)
		}
		return tr
	}
	plain := run("train.micro_batch=2")
	measured := run("train.micro_batch=2", "train.noise_scale_every=1")
	if hashes(plain) != hashes(measured) {
		t.Errorf("weights and state %v with the measurement, %v without", hashes(measured), hashes(plain))
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
