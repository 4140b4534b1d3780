package main

import (
	"os"
	"strings"
	"testing"
)

// The check prints a table and a chart, writes a picture, and fails with its own code where activations grow.
func TestMupCheck(t *testing.T) {
	w := newWorkshop(t)
	args := []string{"mup", "check", w.path("run.yaml"), "model.layers=2", "--widths", "32,64,128", "--seeds", "1", "--lr", "0.003", "--random", "--svg", w.path("check.svg")}
	code, out, errs := anneal(args...)
	if code != exitOK || !strings.Contains(out, "residual") || !strings.Contains(out, "flat: no activation") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if svg, err := os.ReadFile(w.path("check.svg")); err != nil || !strings.Contains(string(svg), "<svg") {
		t.Errorf("the picture holds %.60q, %v", svg, err)
	}
	w.keys(w.object(exitOK, args...), "standard", "widths", "layers", "lr", "seeds", "activations")
	code, _, errs = anneal(append(args, "--standard", "--svg", "")...)
	if code != exitCheck || !strings.Contains(errs, "width^") || !strings.Contains(errs, "model.mup=true") {
		t.Errorf("standard parametrisation: exit %d, want %d\n%s", code, exitCheck, errs)
	}
	if code, _, errs := anneal("mup", "check", w.path("run.yaml"), "--widths", "33,64"); code != exitUsage {
		t.Errorf("a width without whole heads: exit %d, want %d\n%s", code, exitUsage, errs)
	}
}
