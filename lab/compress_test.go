package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"anneal/compress"
	"anneal/config"
	"anneal/run"
	"anneal/train/traintest"
	"anneal/use"
)

// The adapters of a run are merged before its matrices are pruned and rounded: the run that is made has no adapters,
// and its pruned channels are zero.
func TestCompressionMergesAdapters(t *testing.T) {
	data, dir := traintest.Data(t), t.TempDir()
	base := filepath.Join(dir, "base")
	train := func(cfg *config.Config, dir string) {
		if _, err := run.Run(context.Background(), run.Options{Config: cfg, Dir: dir}); err != nil {
			t.Fatal(err)
		}
	}
	train(traintest.Config(data), base)
	for _, dora := range []string{"false", "true"} {
		tuned, out := filepath.Join(dir, "tuned"+dora), filepath.Join(dir, "out"+dora)
		cfg, err := run.LoadConfig(config.Sources{Overrides: []string{
			"init.from=" + base, "data.path=" + data, "precision=fp32", "model.lora_rank=2", "model.lora_dora=" + dora,
			"optimizer.lr=0.3", "train.steps=4", "schedule.warmup=1", "train.batch_tokens=256", "train.eval_every=0",
		}})
		if err != nil {
			t.Fatal(err)
		}
		train(cfg, tuned)
		c, err := Compress(context.Background(), tuned, CompressOptions{
			Out: out, Whole: Channels, Prune: 0.5, Grid: compress.Grid{Bits: 8, Group: 64}, Data: data, Tokens: 512,
			Threads: 1, OnPhase: func(string) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := use.Open(out, 1)
		if err != nil {
			t.Fatalf("dora %s: %v", dora, err)
		}
		defer r.Close()
		if r.Model.Config.LoRARank != 0 || r.Model.Count() != c.Parameters {
			t.Errorf("dora %s: rank %d, %d parameters of %d", dora, r.Model.Config.LoRARank, r.Model.Count(),
				c.Parameters)
		}
		for _, p := range r.Model.Params() {
			if p.Name == "layers.0.mlp.down" && zeroColumns(p.Value.F32(), p.Value.Cols()) != c.Pruned {
				t.Errorf("dora %s: %d of %d columns are zero, want %d", dora, zeroColumns(p.Value.F32(),
					p.Value.Cols()), p.Value.Cols(), c.Pruned)
			}
		}
	}
}

// GPTQ finds the inputs of matrices that are multiplied in FP8, and measures its result in FP8: a run with this loss is
// what it writes.
func TestGPTQKnowsTheInputsOfFP8(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	traintest.Override(cfg, "precision=fp8")
	dir := t.TempDir()
	trained := filepath.Join(dir, "run")
	if _, err := run.Run(t.Context(), run.Options{Config: cfg, Dir: trained}); err != nil {
		t.Fatal(err)
	}
	compressed := func(gptq bool) *Compressed {
		c, err := Compress(t.Context(), trained, CompressOptions{
			Out: filepath.Join(dir, fmt.Sprintf("gptq-%v", gptq)), GPTQ: gptq, Grid: compress.Grid{Bits: 3, Group: 64},
			Data: cfg.Data.Path, Tokens: 512, Inputs: 512, Threads: 1, OnPhase: func(string) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := compressed(true)
	if nearest := compressed(false); c.WeightsHash == nearest.WeightsHash {
		t.Error("GPTQ rounds as if it knew no inputs")
	}
	r, err := use.Open(c.Run, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if e, err := r.Evaluate(t.Context(), cfg.Data.Path, 512, nil); err != nil || e.BitsPerByte != c.After {
		t.Errorf("the run costs %v bits per byte (%v), and %v when it was made", e.BitsPerByte, err, c.After)
	}
}

// zeroColumns counts the columns of a matrix that are zero.
func zeroColumns(w []float32, cols int) (n int) {
	for j := range cols {
		zero := true
		for i := j; i < len(w); i += cols {
			zero = zero && w[i] == 0
		}
		if zero {
			n++
		}
	}
	return n
}
