package use

import (
	"os"
	"path/filepath"
	"testing"

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
