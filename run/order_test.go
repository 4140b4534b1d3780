package run

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/train/traintest"
)

// scoredData is testData with the scores "length" and "noise".
func scoredData(t testing.TB) string {
	t.Helper()
	dir := traintest.Data(t)
	set, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	length := dataset.Scores{Name: "length"}
	noise := dataset.Scores{Name: "noise"}
	i := uint32(1)
	for tokens, err := range set.Documents(false) {
		if err != nil {
			t.Fatal(err)
		}
		i *= 2654435761
		length.Values, noise.Values = append(length.Values, float32(len(tokens))), append(noise.Values, float32(i>>8))
	}
	if err := errors.Join(set.WriteScores(length), set.WriteScores(noise)); err != nil {
		t.Fatal(err)
	}
	return dir
}

const orderOfTest = "data.order=first length over 40% by root, last noise over 30%"

// However documents are packed, a run whose samples are in order, while batches grow and sequences lengthen, resumes
// bit for bit wherever it is stopped, on other threads, too; and the order matters.
func TestOrderedRunsResumeBitForBit(t *testing.T) {
	data := scoredData(t)
	for _, packing := range []string{"concat", "best_fit"} {
		overrides := []string{
			"data.packing=" + packing, "train.length_warmup=8 over 6", "train.batch_ramp=64 over 600 tokens",
		}
		plain := mustRun(t, Options{Config: with(t, data, overrides...), Dir: filepath.Join(t.TempDir(), "plain")})
		overrides = append(overrides, orderOfTest)
		dir := filepath.Join(t.TempDir(), "whole")
		want := mustRun(t, Options{Config: with(t, data, overrides...), Dir: dir})
		if want.WeightsHash == plain.WeightsHash {
			t.Errorf("%s: the order changes nothing", packing)
		}
		for _, at := range []int{2, 12} {
			if got := resumedAt(t, dir, at); got.WeightsHash != want.WeightsHash || got.ValLoss != want.ValLoss {
				t.Errorf("%s: resumed at step %d: weights %.12s, validation %v; uninterrupted %.12s, %v",
					packing, at, got.WeightsHash, got.ValLoss, want.WeightsHash, want.ValLoss)
			}
		}
		stopped := filepath.Join(t.TempDir(), "stopped")
		if r, err := Run(&countdown{context.Background(), 9},
			Options{Config: with(t, data, overrides...), Dir: stopped}); err != nil || !r.Interrupted {
			t.Fatalf("%s: interrupted %+v, %v", packing, r, err)
		}
		got, err := Resume(context.Background(), Options{Dir: stopped, Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		if got.WeightsHash != want.WeightsHash {
			t.Errorf("%s: weights %.12s after an interruption, %.12s without",
				packing, got.WeightsHash, want.WeightsHash)
		}
	}
}

// Annealing that holds back from a checkpoint on can branch off a run in random order: bit for bit the run with that
// order from the start. One that would have held back earlier cannot.
func TestAnnealingBranchesOffARunInRandomOrder(t *testing.T) {
	data, trunk := scoredData(t), filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: with(t, data, "schedule.name=wsd", "schedule.warmup=3"), Dir: trunk})
	branch := func(since string) (*config.Config, string) {
		cfg, err := BranchConfig(trunk, []string{"train.steps=10", "data.order=last length over 2 since " + since})
		if err != nil {
			t.Fatal(err)
		}
		return cfg, filepath.Join(t.TempDir(), "run")
	}
	cfg, dir := branch("6 steps")
	got, err := Branch(context.Background(), Options{Config: cfg, Dir: dir}, trunk, 6)
	if err != nil {
		t.Fatal(err)
	}
	want := mustRun(t, Options{
		Config: with(t, data, "schedule.name=wsd", "schedule.warmup=3", "train.steps=10",
			cfg.Origin("data.order").CommandLine), Dir: filepath.Join(t.TempDir(), "run"),
	})
	if got.WeightsHash != want.WeightsHash {
		t.Errorf("the branch ends with weights %.12s, the run from the start with %.12s",
			got.WeightsHash, want.WeightsHash)
	}
	var fault *dataset.Error
	cfg, dir = branch("5 steps")
	if _, err := Branch(context.Background(), Options{Config: cfg, Dir: dir}, trunk, 6); !errors.As(err, &fault) ||
		!strings.Contains(err.Error(), "data.order") {
		t.Errorf("holding back since before the branch: %v", err)
	}
}

// A run does not resume in another order, whether the config, the scores or the length of the run changed.
func TestAnotherOrderIsRefused(t *testing.T) {
	data := scoredData(t)
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: with(t, data, orderOfTest, "train.steps=6"), Dir: dir})
	path := filepath.Join(dir, "config.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for was, now := range map[string]string{"length over 40%": "length over 60%", "steps: 6": "steps: 12"} {
		changed := bytes.Replace(text, []byte(was), []byte(now), 1)
		if bytes.Equal(text, changed) {
			t.Fatalf("no %q in %s", was, text)
		}
		if err := os.WriteFile(path, changed, 0o666); err != nil {
			t.Fatal(err)
		}
		var fault *dataset.Error
		if _, err := Resume(context.Background(), Options{Dir: dir}); !errors.As(err, &fault) ||
			!strings.Contains(err.Error(), "data.order") {
			t.Errorf("%s: %v", now, err)
		}
	}
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
	set, err := dataset.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	s, err := set.ReadScores("length")
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(s.Values)
	if err := set.WriteScores(s); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(context.Background(), Options{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "the scores in") {
		t.Errorf("other scores: %v", err)
	}
	os.Remove(set.ScoresPath("length"))
	if _, err := Resume(context.Background(), Options{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "anneal data score") {
		t.Errorf("no scores: %v", err)
	}
}
