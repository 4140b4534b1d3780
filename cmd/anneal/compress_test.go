package main

import (
	"math"
	"strings"
	"testing"
)

// A compressed run can be verified, has the reported loss on held-out text, and with gptq a lower one than with plain
// rounding.
func TestCompress(t *testing.T) {
	w := newWorkshop(t)
	run, three := w.path("run"), w.path("three")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", run, "train.steps=120", "model.dim=64", "model.layers=2")
	v := w.object(exitOK, "compress", run, "--bits", "3", "--out", three)
	w.keys(v, "run", "matrices", "weights", "zeros", "parameters", "bits_per_byte_before", "bits_per_byte_after",
		"bytes_before", "bytes_after", "weights_hash", "seconds")
	number := func(v map[string]any, key string) float64 { return v[key].(float64) }
	before, after := number(v, "bits_per_byte_before"), number(v, "bits_per_byte_after")
	plain := w.object(exitOK, "compress", run, "--bits", "3", "--method", "nearest", "--out", w.path("plain"))
	if worst := number(plain, "bits_per_byte_after"); !(before < after && after < worst) {
		t.Errorf("%g bits per byte, %g with gptq, %g with plain rounding", before, after, worst)
	}
	fine := w.object(exitOK, "compress", run, "--bits", "8", "--group", "0", "--out", w.path("fine"))
	if d := math.Abs(number(fine, "bits_per_byte_after") - before); d > 0.01*before {
		t.Errorf("8 bits change the held-out loss by %g bits per byte", d)
	}
	if a, b := number(v, "bytes_before"), number(v, "bytes_after"); b >= a || b < a/16*3 {
		t.Errorf("%g bytes become %g", a, b)
	}
	scored := w.object(exitOK, "eval", three, "--data", w.path("data"), "--tokens", "65536")
	if got := number(scored, "bits_per_byte"); math.Abs(got-after) > 1e-6 {
		t.Errorf("the run that was written costs %g bits per byte, measured was %g", got, after)
	}
	w.object(exitOK, "ckpt", "verify", three)
	w.object(exitOK, "generate", three, "--prompt", "func", "--max-tokens", "3")

	for share, zeros := range map[string][2]float64{"40%": {0.4, 0.41}, "0.25": {0.25, 0.26}, "1:4": {0.75, 0.76},
		"channels:25%": {0.1, 0.25}, "heads:50%": {0.05, 0.5}} {
		v := w.object(exitOK, "compress", run, "--prune", share, "--out", w.path("pruned"+share))
		if got := number(v, "zeros"); got < zeros[0]-1e-3 || got > zeros[1] {
			t.Errorf("--prune %s leaves %g zeros", share, got)
		}
	}

	// The number of units that a share is says what a rounded share does.
	_, out, _ := anneal("compress", run, "--prune", "heads:30%", "--out", w.path("some"))
	if !strings.Contains(out, "in a layer: 1 of 2 pruned") {
		t.Errorf("no number of pruned heads in\n%s", out)
	}

	// The remaining weights of pruned matrices are counted once: two bits a weight, plus two bytes a row and the
	// tensors that are not matrices.
	halved := w.object(exitOK, "compress", run, "--prune", "channels:50%", "--out", w.path("halved"))
	both := w.object(exitOK, "compress", run, "--prune", "channels:50%", "--bits", "2", "--method", "nearest",
		"--group", "0", "--out", w.path("both"))
	rest := 2 * (number(both, "parameters") - number(both, "weights"))
	left := (number(halved, "bytes_after") - rest) / 2
	if want := number(both, "weights") * (1 - number(halved, "zeros")); left != math.Round(want) {
		t.Errorf("%g weights are left, and %g are not 0", left, want)
	}
	if got := number(both, "bytes_after") - rest - left/4; got < 0 || got > left/8 {
		t.Errorf("beside %g weights and the rest, %g bytes are left for scales", left, got)
	}

	experts := w.path("experts")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", experts, "model.family=qwen3_moe", "model.experts=4",
		"model.experts_per_token=2", "model.expert_ffn=32", "train.steps=2")
	for says, args := range map[string][]string{
		"nothing to do":                 {"compress", run, "--out", w.path("x")},
		"--bits 9":                      {"compress", run, "--bits", "9", "--out", w.path("x")},
		"neither a share nor a pattern": {"compress", run, "--prune", "4:2", "--out", w.path("x")},
		"--prune 100%":                  {"compress", run, "--prune", "100%", "--out", w.path("x")},
		"--prune heads:2:4 is neither":  {"compress", run, "--prune", "heads:2:4", "--out", w.path("x")},
		"--inputs 0":                    {"compress", run, "--bits", "4", "--inputs", "0", "--out", w.path("x")},
		"try heads:25%, which prunes":   {"compress", run, "--prune", "heads:10%", "--out", w.path("x")},
		"prunes nothing: a layer has":   {"compress", run, "--prune", "channels:0.1%", "--out", w.path("x")},
		"has no channels":               {"compress", experts, "--prune", "channels:50%", "--out", w.path("x")},
		"experts":                       {"compress", experts, "--bits", "4", "--out", w.path("x")},
	} {
		if code, _, errs := anneal(args...); code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("%v: exit %d, without %q:\n%s", args, code, says, errs)
		}
	}
	if code, _, _ := anneal("compress", run, "--bits", "4", "--out", three); code == exitOK {
		t.Error("a run was written over another")
	}
	w.object(exitOK, "compress", experts, "--bits", "4", "--method", "nearest", "--out", w.path("y"))
}
