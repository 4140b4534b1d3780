// Package traintest has what the tests of training, of runs and of trained models begin with: a small model, a small
// data set, three sources to mix, and the tokens of the fixtures that were made in PyTorch. Only tests import it.
package traintest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/prepare"
	"anneal/tokenizer"
)

// Override sets keys of a configuration as section.key=value.
func Override(cfg *config.Config, overrides ...string) {
	for _, o := range overrides {
		if err := cfg.Override(o); err != nil {
			panic(err)
		}
	}
}

// Config is a small model on a data set.
func Config(data string) *config.Config {
	cfg := config.Default()
	cfg.Data.Path = data
	cfg.Model.Layers, cfg.Model.Dim, cfg.Model.Heads, cfg.Model.Context = 2, 32, 2, 32
	cfg.Train.Steps, cfg.Train.BatchTokens, cfg.Train.EvalTokens = 40, 256, 2048
	cfg.Train.EvalEvery, cfg.Checkpoint.Every = 20, 10
	cfg.Optimizer.LR = 3e-3
	cfg.Resolve()
	return cfg
}

// Documents generates text with structure: sums that a model can learn.
func Documents(n int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := rand.New(rand.NewPCG(1, 2))
		for range n {
			var b bytes.Buffer
			for range 1 + r.IntN(20) {
				x, y := r.IntN(50), r.IntN(50)
				fmt.Fprintf(&b, "the sum of %d and %d is %d\n", x, y, x+y)
			}
			if !yield(b.Bytes(), nil) {
				return
			}
		}
	}
}

// Data builds a small data set with its tokenizer, and returns its directory.
func Data(t testing.TB) string {
	t.Helper()
	return DataWith(t, 0.1, tokenizer.TrainOptions{VocabSize: 320})
}

// DataWith builds the small data set, of which a fraction val is for validation, with a tokenizer learned from it.
func DataWith(t testing.TB, val float64, o tokenizer.TrainOptions) string {
	t.Helper()
	dir := t.TempDir()
	tok, err := tokenizer.Train(context.Background(), o, Documents(200))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tokenizer.json")
	opt := dataset.BuildOptions{
		Dir: dir, Tokenizer: prepare.DatasetTokenizer(tok, path), ValFraction: val,
		NewEncoder: func() func([]uint32, []byte) []uint32 { return tok.NewEncoder().Encode },
	}
	if _, err := dataset.Build(context.Background(), opt, Documents(200)); err != nil {
		t.Fatal(err)
	}
	if err := tok.Save(path); err != nil {
		t.Fatal(err)
	}
	return dir
}
