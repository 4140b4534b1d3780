package use

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"anneal/model"
	"anneal/run"
	"anneal/tensor"
	"anneal/train/traintest"
)

// Opened in 8 bits, a run scores and continues texts as one whose matrices are the rounded numbers, bit for bit.
func TestARunInEightBitsIsOneOfRoundedMatrices(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	cfg := traintest.Config(traintest.Data(t))
	traintest.Override(cfg, "precision=fp32", "model.tie_embeddings=false", "model.dim=64", "model.ffn=96",
		"train.steps=8")
	mustRun(t, run.Options{Config: cfg, Dir: dir})
	eight, err := OpenWith(dir, OpenOptions{Threads: 2, Eight: true})
	if err != nil {
		t.Fatal(err)
	}
	defer eight.Close()
	plain, err := Open(dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()

	texts := []string{"the sum of 3 and 4 is 7\n", strings.Repeat("the sum of 12 and 30 is 42\n", 9)}
	results := func(r *Trained) (scores []Score, made string) {
		scores, err := r.Score(context.Background(), texts...)
		if err != nil {
			t.Fatal(err)
		}
		o := GenerateOptions{Prompt: "the sum of", MaxTokens: 40, Sampling: model.Sampling{Temperature: 1, Seed: 3}}
		if _, err := r.Generate(context.Background(), o, func(text string) { made += text }); err != nil {
			t.Fatal(err)
		}
		return scores, made
	}
	unrounded, _ := results(plain)
	copies := eight.Model.Copies()
	if matrices := 4*cfg.Model.Layers + 1; len(copies) != matrices {
		t.Fatalf("%d matrices are held in 8 bits, want %d", len(copies), matrices)
	}
	for n, w := range eight.Model.Params() {
		q := copies[&w.Param]
		if q == nil {
			continue
		}
		v, cols := plain.Model.Params()[n].Value, q.Cols()
		for i := range v.Rows() {
			for j := range cols {
				v.SetFloat64(i*cols+j, float64(tensor.Q8.InBlock(tensor.Q8.Block(q.Pointer(), cols, i, j), i, j)))
			}
		}
	}
	got, text := results(eight)
	want, wantText := results(plain)
	for i := range texts {
		if got[i] != want[i] {
			t.Errorf("text %d has the score %+v, want %+v", i, got[i], want[i])
		}
		if got[i] == unrounded[i] {
			t.Errorf("text %d has the score of weights that are not rounded", i)
		}
	}
	if text != wantText {
		t.Errorf("continued with %q, want %q", text, wantText)
	}
}

func TestEightBitsWhereTheyCannotBeAreRefused(t *testing.T) {
	farDevice(t)
	dir := filepath.Join(t.TempDir(), "run")
	cfg := traintest.Config(traintest.Data(t))
	traintest.Override(cfg, "precision=fp64", "train.steps=2")
	mustRun(t, run.Options{Config: cfg, Dir: dir})
	for device, want := range map[string]string{"cpu": "no matrix of this model", "cuda": "by the CPU only"} {
		r, err := OpenWith(dir, OpenOptions{Device: device, Eight: true})
		if err == nil {
			r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("on %s: %v, want an error with %q", device, err, want)
		}
	}
}
