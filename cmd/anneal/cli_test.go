package main

import (
	"strings"
	"testing"
)

// Config overrides and paths may stand before and after a flag; everything after -- is an argument.
func TestArgumentsMayStandAroundFlags(t *testing.T) {
	w := newWorkshop(t)
	code, out, errs := anneal("train", "--dry-run",
		w.path("run.yaml"), "train.steps=7", "--out", w.path("a"), "seed=41")
	if code != exitOK || !strings.Contains(out, "seed: 41 ") || !strings.Contains(out, "  steps: 7 ") {
		t.Errorf("exit %d, %s, out of\n%s", code, errs, out)
	}
	if code, _, errs := anneal("train", w.path("run.yaml"), "--", "--dry-run"); code != exitUsage ||
		!strings.Contains(errs, `"--dry-run" is not an override`) {
		t.Errorf("behind --: exit %d, %s", code, errs)
	}
	w.object(exitOK, "tokenizer", "train", w.path("text"), "--vocab", "300", w.path("run.yaml"), "--out",
		w.path("two.json"))
}
