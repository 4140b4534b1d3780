package main

import (
	"os"
	"strings"
	"testing"
)

// The runs of a comparison share everything but their overrides: one that overrides nothing of effect ends in the same
// bits; one at another rate does not; asking again trains nothing.
func TestCompareDiffersOnlyInWhatItsVariantsSay(t *testing.T) {
	w := newWorkshop(t)
	args := []string{
		"compare", w.path("run.yaml"), "train.steps=6", "--with", "threads=1",
		"--with", "optimizer.lr=1e-3 schedule.warmup=2 steps train.clip=0.5", "--svg", w.path("loss.svg"), "--out",
		w.path("which"),
	}
	runs := w.object(exitOK, args...)["runs"].([]any)
	if len(runs) != 3 {
		t.Fatalf("%d runs, want the configured one and two variants", len(runs))
	}
	var hashes []any
	for _, r := range runs {
		run := r.(map[string]any)
		w.keys(run, "name", "run", "val_bits_per_byte", "change", "train_loss", "tokens_per_second",
			"arena_bytes", "diverged")
		hashes = append(hashes, run["weights_hash"])
	}
	if hashes[0] != hashes[1] || hashes[0] == hashes[2] {
		t.Errorf("weights %v: the first two runs compute the same, the third does not", hashes)
	}
	again := w.object(exitOK, args...)["runs"].([]any)[2].(map[string]any)
	if again["weights_hash"] != hashes[2] || again["tokens_per_second"] != nil {
		t.Errorf("asked again it says %v: want the same weights, and no steps made", again)
	}

	if svg, err := os.ReadFile(w.path("loss.svg")); err != nil || !strings.Contains(string(svg), "optimizer.lr=1e-3") {
		t.Errorf("the chart has %d bytes and no curve for the second variant: %v", len(svg), err)
	}

	fair := w.object(exitOK, "compare", w.path("run.yaml"), "train.steps=6", "model.context=64", "--with",
		"model.attention=window:4", "--with", "model.layers=2 train.steps=5", "--with", "model.positions=learned",
		"--same-compute", "--context", "4x", "--out", w.path("fair"))["runs"].([]any)
	for i, want := range []struct{ least, most float64 }{{6, 6}, {7, 8}, {5, 5}, {6, 6}} {
		run := fair[i].(map[string]any)
		if n := run["steps"].(float64); n < want.least || n > want.most {
			t.Errorf("%v made %v steps, want %v to %v for the operations of the first run",
				run["name"], n, want.least, want.most)
		}
		if _, has := run["far_bits_per_byte"].(float64); has != (i != 3) {
			t.Errorf("%v has %v bits per byte on rows four times as long; learned positions cannot read them",
				run["name"], run["far_bits_per_byte"])
		}
	}

	args[len(args)-5] = "optimizer.lr=2e-3"
	if code, _, errs := anneal(args...); code != exitOK {
		t.Errorf("another variant beside those runs: exit %d\n%s", code, errs)
	}
	if code, _, errs := anneal("compare", w.path("run.yaml"), "train.steps=7", "--with", "threads=1", "--out",
		w.path("which")); code != exitUsage || !strings.Contains(errs, "train.steps: 6 → 7") {
		t.Errorf("other runs in the same directory: exit %d, want %d and what differs\n%s", code, exitUsage, errs)
	}
	w.object(exitUsage, "compare", w.path("run.yaml"), "--with", " ", "--out", w.path("bad"))
	if code, _, errs := anneal("compare", w.path("run.yaml"), "--with", "optimizer.lr=-1", "--out",
		w.path("bad")); code != exitUsage || !strings.Contains(errs, "optimizer.lr=-1") {
		t.Errorf("a bad variant: exit %d, want %d and its name\n%s", code, exitUsage, errs)
	}
	for _, context := range []string{"0", "four", "0.3x"} {
		if code, _, errs := anneal("compare", w.path("run.yaml"), "--with", "optimizer.lr=1e-3", "--context", context,
			"--out", w.path("bad")); code != exitUsage || !strings.Contains(errs, "at --context") {
			t.Errorf("--context %s: exit %d, want %d and where it is said\n%s", context, code, exitUsage, errs)
		}
	}
	if _, err := os.Stat(w.path("bad")); err == nil {
		t.Error("a run was begun before all were checked")
	}
}
