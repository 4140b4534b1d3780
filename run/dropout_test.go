package run

import (
	"context"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

func droppingConfig(data string) *config.Config {
	cfg := traintest.Config(data)
	cfg.Model.Layers, cfg.Model.Dropout, cfg.Model.StochasticDepth = 3, 0.1, 0.5
	cfg.Train.MicroBatch, cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Train.EvalEvery = 2, 6, 1, 0
	return cfg
}

// What a run drops follows from seed, step and place: a resumed run drops what an uninterrupted one does, and one that
// computes again, or on other threads, too.
func TestADroppingRunResumesBitForBit(t *testing.T) {
	data := traintest.Data(t)
	run := func(change func(*config.Config)) *Result {
		cfg := droppingConfig(data)
		change(cfg)
		return mustRun(t, Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
	}
	want := run(func(*config.Config) {})
	same := func(what string, got *Result) {
		t.Helper()
		if got.Step != want.Step || got.WeightsHash != want.WeightsHash || got.OptimizerHash != want.OptimizerHash ||
			got.ValLoss != want.ValLoss {
			t.Errorf("%s: step %d, weights %.12s, validation %v; want %d, %.12s, %v",
				what, got.Step, got.WeightsHash, got.ValLoss, want.Step, want.WeightsHash, want.ValLoss)
		}
	}
	same("recomputed", run(func(c *config.Config) { c.Memory.Recompute = recomputing("every_layer") }))
	same("on one thread", run(func(c *config.Config) { c.Threads = 1 }))
	if other := run(func(c *config.Config) { c.Model.Dropout, c.Model.StochasticDepth = 0, 0 }); other.WeightsHash ==
		want.WeightsHash {
		t.Error("a run that drops nothing ends with the same weights")
	}

	dir := filepath.Join(t.TempDir(), "run")
	cfg := droppingConfig(data)
	r, err := Run(&countdown{context.Background(), 3*cfg.Train.BatchTokens/(2*cfg.Model.Context) + 1},
		Options{Config: cfg, Dir: dir})
	if err != nil || !r.Interrupted || r.Step != 3 {
		t.Fatalf("interrupted %v at step %d, %v; want in the fourth step", r.Interrupted, r.Step, err)
	}
	if r, err = Resume(context.Background(), Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	same("resumed", r)
}
