package lab

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/dataset"
)

// Without held-out text there is nothing to compare, which is said before anything is trained.
func TestAblationNeedsHeldOutText(t *testing.T) {
	_, err := Ablate(t.Context(), AblateOptions{
		Overrides: []string{"data.path=" + sourceDataWith(t, 0), "model.layers=1", "model.dim=32", "model.heads=2",
			"model.context=64", "train.steps=6", "train.batch_tokens=512"},
		Variants: [][]string{{"optimizer.name=lion"}}, Seeds: 1, Equal: EqualTokens,
		OnRun: func(string) { t.Error("a run begins") }, Out: filepath.Join(t.TempDir(), "out"),
	})
	if !errors.Is(err, dataset.ErrNoValidation) {
		t.Errorf("%v", err)
	}
}

// An ablation that is stopped in its third run goes on: the two that had ended are neither trained again nor counted.
// All weights are those of an ablation that was never stopped and trains its runs several at a time.
func TestAblationGoesOn(t *testing.T) {
	o := AblateOptions{
		Overrides: []string{
			"data.path=" + sourceData(t), "model.layers=1", "model.dim=32", "model.heads=2", "model.context=64",
			"train.steps=6", "train.batch_tokens=512", "train.eval_tokens=4096",
		},
		Variants: [][]string{{"optimizer.name=lion"}}, Seeds: 2, Equal: EqualTokens,
		OnRun: func(string) {}, Out: filepath.Join(t.TempDir(), "whole"),
	}
	whole, err := Ablate(t.Context(), o)
	if err != nil || len(whole) != 2 {
		t.Fatalf("%d variants: %v", len(whole), err)
	}
	ctx, stop := context.WithCancel(t.Context())
	o.Out, o.Threads = filepath.Join(t.TempDir(), "stopped"), 1 // one at a time
	begun := 0
	o.OnRun = func(string) {
		if begun++; begun == 3 {
			stop()
		}
	}
	if list, err := Ablate(ctx, o); list != nil || err != nil || begun != 3 {
		t.Fatalf("stopped in its third run it returns %v, %v after %d", list, err, begun)
	}
	var lines []string
	o.OnRun = func(text string) { lines = append(lines, text) }
	list, err := Ablate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(lines, "\n"); strings.Count(text, "ETA") != 1 ||
		!strings.Contains(text, "\nrun 2 of 2: optimizer.name=lion, seed 2, ETA ") {
		t.Errorf("the runs begin with\n%s\nwant two, and an ETA once one has been trained", text)
	}
	for seed := range 2 {
		for i := range list {
			got, want := list[i].Runs[seed], whole[i].Runs[seed]
			if got.WeightsHash != want.WeightsHash || got.WeightsHash == "" {
				t.Errorf("variant %d, seed %d: weights %s, want %s", i, got.Seed, got.WeightsHash, want.WeightsHash)
			}
			if trained := !math.IsNaN(got.TokensPerSecond); trained != (seed == 1) {
				t.Errorf("variant %d, seed %d: trained when the ablation went on is %v", i, got.Seed, trained)
			}
		}
	}
}

// A search costs the values that no other run needs.
func TestCostOfSearch(t *testing.T) {
	o := AblateOptions{Overrides: []string{"train.steps=10", "train.batch_tokens=512", "model.context=64"}}
	cfg, err := o.load(append(o.Overrides, "data.path="+t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	v := Ablated{Config: cfg, Runs: make([]Compared, 3), Value: 2}
	for _, value := range []float64{1, 2, 4} {
		v.Tuned = append(v.Tuned, Ablated{Config: cfg, Value: value, Runs: make([]Compared, 1)})
	}
	if got, want := CostOfSearch([]Ablated{v, v}), (SearchCost{4, 4 * 5120, 0.4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
