package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/precision"
	"anneal/train/traintest"
)

// recipes are every precision, and those that come in several ways.
func recipes() map[string]func(*config.Config) {
	all := map[string]func(*config.Config){
		"fp8 delayed": func(c *config.Config) { c.Precision, c.FP8.Scaling, c.FP8.History = "fp8", "delayed", 16 },
	}
	for _, name := range precision.Names() {
		all[name] = func(c *config.Config) { c.Precision = name }
	}
	return all
}

// A scale that cannot be lowered is no way out of overflows: the run stops and says what would be.
func TestOverflowsAtTheFloorEndTheRun(t *testing.T) {
	data := traintest.Data(t)
	for _, dynamic := range []bool{true, false} {
		cfg := traintest.Config(data)
		cfg.Precision, cfg.Guard.MaxSkips = "fp16", 3
		cfg.LossScale.Dynamic, cfg.LossScale.Init = dynamic, 0x1p101
		if dynamic {
			cfg.LossScale.Floor = 0x1p100
		}
		_, err := Run(context.Background(), Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
		var diverged *DivergedError
		if !errors.As(err, &diverged) || diverged.Skips != 3 || !strings.Contains(err.Error(), "precision=bf16") {
			t.Fatalf("dynamic %v: %v", dynamic, err)
		}
		if want := map[bool]int{true: 4, false: 3}[dynamic]; diverged.Step != want { // one halving is free
			t.Errorf("dynamic %v: stopped at step %d, want %d", dynamic, diverged.Step, want)
		}
	}
}

// Every precision: a run that resumes from a checkpoint ends with the bits of one that was never stopped.
func TestEveryPrecisionResumesBitForBit(t *testing.T) {
	data := traintest.Data(t)
	for policy, set := range recipes() {
		cfg := traintest.Config(data)
		set(cfg)
		cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Checkpoint.Every, cfg.Schedule.Warmup = 6, 0, 3, 1
		if policy == "fp16" {
			cfg.LossScale.Interval = 2
		}
		dir := filepath.Join(t.TempDir(), "run")
		want := mustRun(t, Options{Config: cfg, Dir: dir})
		if err := os.RemoveAll(filepath.Join(dir, "checkpoints", "step-00000006")); err != nil {
			t.Fatal(err)
		}
		got, err := Resume(context.Background(), Options{Dir: dir})
		if err != nil {
			t.Fatalf("%s: %v", policy, err)
		}
		if got.Step != 6 || got.WeightsHash != want.WeightsHash || got.OptimizerHash != want.OptimizerHash ||
			got.TrainLoss != want.TrainLoss || got.ValLoss != want.ValLoss {
			t.Errorf("%s: resumed to step %d, weights %.12s, losses %v, %v; uninterrupted %.12s, %v, %v",
				policy, got.Step, got.WeightsHash, got.TrainLoss, got.ValLoss, want.WeightsHash,
				want.TrainLoss, want.ValLoss)
		}
	}
}
