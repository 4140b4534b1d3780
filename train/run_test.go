package train

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/prepare"
	"anneal/tokenizer"
)

// override sets keys of a configuration as section.key=value.
func override(cfg *config.Config, overrides ...string) {
	for _, o := range overrides {
		if err := cfg.Override(o); err != nil {
			panic(err)
		}
	}
}

// tinyConfig is a small model on a data set.
func tinyConfig(data string) *config.Config {
	cfg := config.Default()
	cfg.Data.Path = data
	cfg.Model.Layers, cfg.Model.Dim, cfg.Model.Heads, cfg.Model.Context = 2, 32, 2, 32
	cfg.Train.Steps, cfg.Train.BatchTokens, cfg.Train.EvalTokens = 40, 256, 2048
	cfg.Train.EvalEvery, cfg.Checkpoint.Every = 20, 10
	cfg.Optimizer.LR = 3e-3
	cfg.Resolve()
	return cfg
}

// documents generates text with structure: sums that a model can learn.
func documents(n int) iter.Seq2[[]byte, error] {
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

// testData builds a small data set with its tokenizer.
func testData(t testing.TB) string { return buildData(t, 0.1) }

func buildData(t testing.TB, val float64) string {
	return buildDataWith(t, val, tokenizer.TrainOptions{VocabSize: 320})
}

// buildDataWith builds the small data set with a tokenizer that is learned from it.
func buildDataWith(t testing.TB, val float64, o tokenizer.TrainOptions) string {
	t.Helper()
	dir := t.TempDir()
	tok, err := tokenizer.Train(context.Background(), o, documents(200))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tokenizer.json")
	opt := dataset.BuildOptions{
		Dir: dir, Tokenizer: prepare.DatasetTokenizer(tok, path), ValFraction: val,
		NewEncoder: func() func([]uint32, []byte) []uint32 { return tok.NewEncoder().Encode },
	}
	if _, err := dataset.Build(context.Background(), opt, documents(200)); err != nil {
		t.Fatal(err)
	}
	if err := tok.Save(path); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A step whose loss is not finite leaves weights, moments and Adam's count as they were.
func TestSkippedStepChangesNothing(t *testing.T) {
	p := loadParity(t)
	tr, src := parityTrainer(t, p, 0, "fp32", 1, 4)
	if _, err := tr.Step(context.Background(), src); err != nil {
		t.Fatal(err)
	}
	// A NaN in one embedding row makes the loss NaN; its own bits are restored before comparing.
	w := tr.Model().Params()[0].Value.F32()
	before, updates := hashes(tr), tr.Position().Updates
	keep := w[5]
	w[5] = float32(math.NaN())
	s, err := tr.Step(context.Background(), src)
	if err != nil || !s.Skipped {
		t.Fatalf("step with a NaN weight: skipped %v, %v", s.Skipped, err)
	}
	w[5] = keep
	if after := hashes(tr); after != before || tr.Position().Updates != updates || tr.Guard().NonFinite != 1 {
		t.Errorf("a skipped step changed the state: %v, %v; %d updates, %d non-finite",
			before, after, tr.Position().Updates, tr.Guard().NonFinite)
	}
}

func TestSpikeGuardSkipsAnOutlier(t *testing.T) {
	g := newGuard(config.Guard{SpikeZ: 4, Window: 64})
	for i := range 64 {
		if !g.accept(2+0.01*float64(i%3), 1) {
			t.Fatalf("ordinary loss %d was skipped", i)
		}
	}
	if g.accept(3, 1) {
		t.Error("a loss 100 standard deviations up was accepted")
	}
	if !g.accept(2.01, 1) || g.Row != 0 || g.Skipped != 1 {
		t.Errorf("after the spike: row %d, skipped %d", g.Row, g.Skipped)
	}
}
