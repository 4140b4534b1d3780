package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The proposed command trains on the text, and its run counts correct answers.
func TestSynthSaysHowToTrain(t *testing.T) {
	dir := t.TempDir()
	data, out := filepath.Join(dir, "sums"), filepath.Join(dir, "run")
	code, text, errs := anneal("data", "synth", "modular", "--p", "11", "--out", data)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	_, next, _ := strings.Cut(text+errs, "next: anneal ")
	next, _, _ = strings.Cut(next, " --out")
	args := strings.Fields(strings.Replace(next, "examples/", "../../examples/", 1))
	args = append(args, "train.steps=2", "schedule.warmup=1", "model.layers=1", "--out", out)
	if code, _, errs := anneal(args...); code != exitOK {
		t.Fatalf("anneal %s: exit %d: %s", next, code, errs)
	}
	code, text, errs = anneal("eval", out, "--tasks", filepath.Join(data, "tasks"))
	if code != exitOK || !strings.Contains(text, "answers") || !strings.Contains(text, "perplexity") {
		t.Errorf("eval --tasks: exit %d: %s%s", code, text, errs)
	}
	code, text, errs = anneal("eval", out, "--data", data)
	if code != exitOK || !strings.Contains(text+errs, "documents are right as a whole") {
		t.Errorf("eval: exit %d: %s%s", code, text, errs)
	}
}
