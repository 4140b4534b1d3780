package main

import (
	"os"
	"strings"
	"testing"
)

// The check prints a table and a chart, writes a picture, and fails with its own code where activations grow.
func TestMupCheck(t *testing.T) {
	w := newWorkshop(t)
	args := []string{
		"mup", "check", w.path("run.yaml"), "model.layers=2", "--widths", "32,64,128", "--seeds", "1", "--lr", "0.003",
		"--random", "--svg", w.path("check.svg"),
	}
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

// A sweep's losses equal those of separate runs: at the width of the base model, where muP changes nothing, that of
// the run as configured. A rate at which training fails has no loss, and is never the best.
func TestMupSweep(t *testing.T) {
	w := newWorkshop(t)
	short := []string{w.path("run.yaml"), "train.steps=6", "model.ffn=88", "optimizer.weight_decay=0"}
	v := w.object(exitOK, append([]string{"mup", "sweep", "--widths", "32,64", "--rates", "0.001,0.004,1e5", "--svg",
		w.path("transfer.svg")}, short...)...)
	w.keys(v, "standard", "widths", "rates", "steps", "val_loss", "best", "shift")
	losses := v["val_loss"].([]any)
	for i, rate := range []string{"0.001", "0.004"} {
		run := w.object(exitOK,
			append(append([]string{"train"}, short...), "optimizer.lr="+rate, "--out", w.path("at"+rate))...)
		if got, want := losses[0].([]any)[i], run["val_loss"]; got != want {
			t.Errorf("rate %s: the sweep's loss is %v, a run's %v", rate, got, want)
		}
	}
	for i, best := range v["best"].([]any) {
		if best == 1e5 || best == nil {
			t.Errorf("the best rate of width %d is %v; losses %v", i, best, losses[i])
		}
	}
	if code, _, errs := anneal(append([]string{"mup", "sweep", "--rates", "0.004,0.001"}, short...)...); code !=
		exitUsage {
		t.Errorf("rates that fall: exit %d, want %d\n%s", code, exitUsage, errs)
	}
}
