package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"anneal/corpus"
	"anneal/internal/torture"
	"anneal/prepare"
	"anneal/tokenizer"
)

// sourceData builds a small data set of Go source, which every machine with Go has.
func sourceData(t *testing.T) string {
	t.Helper()
	return sourceDataWith(t, 0.1)
}

// sourceDataWith holds a share of the documents out.
func sourceDataWith(t *testing.T, val float64) string {
	t.Helper()
	source, err := prepare.GoSource()
	if err != nil {
		t.Fatal(err)
	}
	text := prepare.Text{Options: corpus.Options{Extensions: []string{".go"}}}
	for _, dir := range []string{"strconv", "strings", "bytes", "io", "sort", "fmt", "os"} {
		text.Paths = append(text.Paths, filepath.Join(source, dir))
	}
	tok, _, err := prepare.TrainTokenizer(context.Background(), text, tokenizer.TrainOptions{VocabSize: 512})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	_, _, err = prepare.BuildData(context.Background(), text, prepare.DataOptions{
		Dir: dir, Tokenizer: tok, TokenizerPath: "tokenizer.json", ValFraction: val,
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// MUP-3: from width 32 to width 128 the best learning rate stays within one step of a grid of factors of two under
// muP, and falls by two or more without it.
func TestBestRateStaysUnderMuPOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("trains sixteen models")
	}
	data := sourceData(t)
	for _, standard := range []bool{false, true} {
		r, err := SweepRates(context.Background(), TransferOptions{
			Family: Family{
				Overrides: []string{
					"data.path=" + data, "model.layers=2", "model.dim=32", "model.heads=2", "model.context=64",
					"model.tie_embeddings=false", "train.steps=40", "train.batch_tokens=512", "train.eval_tokens=8192",
					"schedule.warmup=4",
				},
				Widths: []int{32, 128}, Standard: standard,
			},
			Rates: []float64{0.004, 0.008, 0.016, 0.032},
		})
		if err != nil {
			t.Fatal(err)
		}
		shift, table := r.Shift(), fmt.Sprintf("rates %v, losses %.3f at widths %v", r.Rates, r.Loss, r.Sizes)
		if !standard && (shift < 0.5 || shift > 2) {
			t.Errorf("under muP the best rate changes by a factor of %v: %s", shift, table)
		}
		if standard && shift > 0.25 {
			t.Errorf("without muP the best rate changes by a factor of %v, want 1/4 or less: %s", shift, table)
		}
	}
}

// With a base depth the best learning rate of a deeper model stays within one step of a grid of factors of two, and the
// deeper model is better; without, the deep model has a higher loss at the best rate of the shallow one.
func TestBestRateStaysWithDepth(t *testing.T) {
	torture.Long(t)
	data := sourceData(t)
	var loss [2]float64 // of the deep model, at the best rate of the shallow one
	for i, standard := range []bool{false, true} {
		r, err := SweepRates(t.Context(), TransferOptions{
			Family: Family{
				Overrides: []string{
					"data.path=" + data, "model.dim=32", "model.heads=2", "model.context=64", "train.steps=80",
					"model.tie_embeddings=false", "train.batch_tokens=512", "train.eval_tokens=8192",
					"schedule.warmup=8",
				},
				Depths: []int{2, 16}, Standard: standard,
			},
			Rates: []float64{0.004, 0.008, 0.016, 0.032},
		})
		if err != nil {
			t.Fatal(err)
		}
		table := fmt.Sprintf("rates %v, losses %.3f at depths %v", r.Rates, r.Loss, r.Sizes)
		if shift := r.Shift(); !standard && (shift < 0.5 || shift > 2) {
			t.Errorf("with a base depth the best rate changes by a factor of %v: %s", shift, table)
		}
		loss[i] = r.Loss[1][slices.Index(r.Rates, r.Best[0])]
	}
	if loss[0] >= loss[1] {
		t.Errorf("16 layers at the best rate of 2: %.3f with a base depth, %.3f without", loss[0], loss[1])
	}
}
