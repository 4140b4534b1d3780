package run

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// initParity is 100 steps of transformers from the weights in testdata/init; testdata/make_init.py defines them.
type initParity struct {
	Steps, Batch, Context, Vocab int
	Optimizer                    struct {
		LR, Beta1, Beta2, Eps, Clip float64
		WeightDecay                 float64 `json:"weight_decay"`
	}
	Losses map[string]struct{ Float32, Float64 []float64 }
}

// A GPT-2 and a Qwen3 that transformers saved are trained further as transformers does it: 100 losses from their
// weights, on shorter rows than theirs, straight from the directory and by way of an import.
func TestTrainingGoesOnAsInTransformers(t *testing.T) {
	text, err := os.ReadFile("testdata/init.json")
	if err != nil {
		t.Fatal(err)
	}
	var p initParity
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	for name, losses := range p.Losses {
		saved, imported := filepath.Join("testdata", "init", name), filepath.Join(t.TempDir(), name)
		r, err := ImportHF(saved, imported, "")
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"gpt2": "fp32", "qwen3": "bf16"}[name]; r.Precision != want {
			t.Errorf("%s is stored in %s and imported as %s, want %s", name, r.DType, r.Precision, want)
		}
		if s := Summarize(imported); s.State != Imported || s.Steps != 0 {
			t.Errorf("%s: %s, with %d steps planned", name, s.State, s.Steps)
		}
		for _, run := range []struct {
			from, precision string
			want            []float64
			tolerance       float64 // relative
		}{
			// transformers computes norms and positions of Qwen3 in float32 even then
			{saved, "fp64", losses.Float64, 1e-6},
			{saved, "fp32", losses.Float32, 1e-4},
			{imported, "fp32", losses.Float32, 1e-4},
		} {
			cfg := p.config(t, run.from, run.precision)
			src := traintest.Tokens{VocabSize: p.Vocab, Length: p.Context, BatchSize: p.Batch}
			trial, err := NewTrial(cfg, src, nil)
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Init.Weights != r.WeightsHash {
				t.Errorf("%s: trained from %.16s, imported as %.16s", run.from, cfg.Init.Weights, r.WeightsHash)
			}
			worst := 0.0
			for i, want := range run.want {
				got, err := trial.Step(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				d := math.Abs(got.Loss-want) / want
				if worst = max(worst, d); !(d <= run.tolerance) {
					t.Fatalf("%s in %s, step %d: loss %.9g, transformers %.9g (relative difference %.2g)",
						run.from, run.precision, i, got.Loss, want, d)
				}
			}
			t.Logf("%s in %s: largest relative difference of a loss %.2g", run.from, run.precision, worst)
			trial.Close()
		}
	}
}

// config is the configuration of the fixture's runs. Their shape comes from the weights.
func (p initParity) config(t *testing.T, from, precision string) *config.Config {
	t.Helper()
	o := p.Optimizer
	cfg, err := LoadConfig(config.Sources{Overrides: []string{
		"init.from=" + from, "precision=" + precision, "data.path=parity", fmt.Sprint("model.context=", p.Context),
		fmt.Sprint("train.steps=", p.Steps), fmt.Sprint("train.batch_tokens=", p.Batch*p.Context),
		fmt.Sprint("train.clip=", o.Clip),
		"schedule.name=constant", "schedule.warmup=1", fmt.Sprint("optimizer.lr=", o.LR),
		fmt.Sprint("optimizer.eps=", o.Eps),
		fmt.Sprint("optimizer.beta1=", o.Beta1), fmt.Sprint("optimizer.beta2=", o.Beta2),
		fmt.Sprint("optimizer.weight_decay=", o.WeightDecay),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
