package use

import (
	"context"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/precision"
	"anneal/run"
	"anneal/safetensors"
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

// What a run trained at each precision says of its data afterwards is what it said at its end.
func TestEveryPrecisionEvaluatesGeneratesAndExports(t *testing.T) {
	data := traintest.Data(t)
	for policy, set := range recipes() {
		cfg := traintest.Config(data)
		set(cfg)
		cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Schedule.Warmup = 3, 0, 1
		if policy != "fp8 delayed" {
			cfg.Average.EMA = 0.9
		}
		dir := filepath.Join(t.TempDir(), "run")
		want := mustRun(t, run.Options{Config: cfg, Dir: dir})
		r, err := Open(dir, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got, err := r.Evaluate(context.Background(), data, cfg.Train.EvalTokens, nil)
		if err != nil || got.Loss != want.ValLoss {
			t.Errorf("%s: evaluates to %v, %v; at its end to %v", policy, got.Loss, err, want.ValLoss)
		}
		if cfg.Average.EMA > 0 {
			a, err := OpenWith(dir, OpenOptions{Threads: 1, WeightOptions: run.WeightOptions{Average: true}})
			if err != nil {
				t.Fatalf("%s: the average: %v", policy, err)
			}
			defer a.Close()
			if got, err := a.Evaluate(context.Background(), data, cfg.Train.EvalTokens, nil); err != nil ||
				got.Loss != want.ValLossEMA {
				t.Errorf("%s: the average evaluates to %v, %v; at its end to %v",
					policy, got.Loss, err, want.ValLossEMA)
			}
		}
		if done, err := r.Generate(context.Background(), GenerateOptions{Prompt: "the", MaxTokens: 3},
			func(string) {}); err != nil {
			t.Errorf("%s: generates %d tokens: %v", policy, len(done.IDs), err)
		}
		for _, dtype := range []string{"F32", "BF16", "F16"} {
			if _, err := r.ExportHF(filepath.Join(t.TempDir(), "out"), safetensors.DType(dtype)); err != nil {
				t.Errorf("%s: export in %s: %v", policy, dtype, err)
			}
		}
	}
}
