package run

import (
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// What is kept and what is run again changes no bit of a run, and less is kept.
func TestRecomputationChangesNoBitOfARun(t *testing.T) {
	data := traintest.Data(t)
	run := func(strategy string) (*Result, int64) {
		cfg := traintest.Config(data)
		cfg.Model.Layers, cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Memory.Recompute = 6, 3, 1, recomputing(strategy)
		r := mustRun(t, Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
		for _, a := range r.Arenas {
			if a.Name == "activations" {
				return r, a.Peak
			}
		}
		t.Fatal("no arena of activations")
		return nil, 0
	}
	want, most := run("none")
	for _, strategy := range []string{"every_layer", "every:2", "sqrt", "selective", "budget:700kB"} {
		got, peak := run(strategy)
		if got.WeightsHash != want.WeightsHash || got.OptimizerHash != want.OptimizerHash ||
			got.TrainLoss != want.TrainLoss {
			t.Errorf("%s: weights %.12s, loss %v; without recomputation %.12s, %v",
				strategy, got.WeightsHash, got.TrainLoss, want.WeightsHash, want.TrainLoss)
		}
		if peak >= most {
			t.Errorf("%s: %d bytes of activations, without recomputation %d", strategy, peak, most)
		}
		if strategy == "budget:700kB" && peak > 700_000 {
			t.Errorf("a budget of 700 kB holds %d bytes", peak)
		}
	}
}

// The scales of FP8 operands go by the tensors that pass, each of which counts once however often it is computed.
func TestRecomputationChangesNoBitOfScaledPrecisions(t *testing.T) {
	data := traintest.Data(t)
	for i, change := range []func(*config.Config){
		func(c *config.Config) { c.Precision = "fp8" },
		func(c *config.Config) { c.Precision, c.FP8.Scaling, c.FP8.History = "fp8", "delayed", 2 },
		func(c *config.Config) { c.Precision, c.FP8.Scaling = "fp8", "block" },
		func(c *config.Config) { c.Precision, c.Model.Dropout, c.Model.StochasticDepth = "fp8", 0.1, 0.3 },
		func(c *config.Config) { c.Precision = "fp16" },
	} {
		hash := func(strategy string) string {
			cfg := traintest.Config(data)
			cfg.Model.Layers, cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Train.MicroBatch, cfg.Memory.Recompute = 4, 4,
				1, 4, recomputing(strategy)
			change(cfg)
			r := mustRun(t, Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
			return r.WeightsHash
		}
		want := hash("none")
		for _, strategy := range []string{"every:2", "selective"} {
			if got := hash(strategy); got != want {
				t.Errorf("case %d, %s: weights %.12s, without recomputation %.12s", i, strategy, got, want)
			}
		}
	}
}

// A batch of any number of micro-batches is trained on in the memory of two.
func TestAccumulationReachesAnyBatchInFixedMemory(t *testing.T) {
	data := traintest.Data(t)
	var want []ArenaUse
	for _, micro := range []int{2, 4, 16} {
		cfg := traintest.Config(data)
		cfg.Train.MicroBatch, cfg.Train.BatchTokens = 2, micro*2*cfg.Model.Context
		cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Train.EvalEvery = 2, 1, 0
		r := mustRun(t, Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
		if want == nil {
			want = r.Arenas
		}
		for i, a := range r.Arenas {
			if a != want[i] {
				t.Errorf("%d micro-batches a step: %+v, with two %+v", micro, a, want[i])
			}
		}
	}
}
