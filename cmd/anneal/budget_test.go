package main

import (
	"strings"
	"testing"
)

func TestBudgetSizesARunWithoutAConfig(t *testing.T) {
	w := newWorkshop(t)
	data := "data.path=" + w.path("data")
	v := w.object(exitOK, "train", "--budget", "1m", data, "model.layers=2", "model.dim=64", "--dry-run")
	w.keys(v, "derived", "predicted")
	w.keys(v["predicted"].(map[string]any), "bits_per_byte", "seconds", "memory_bytes")
	for _, d := range v["derived"].([]any) {
		w.keys(d.(map[string]any), "key", "value", "rule", "source")
	}
	mix := "data.mix=a=" + w.path("data") + ",b=" + w.copyOf(w.path("data"))
	run := w.path("mixed")
	w.object(exitOK, "train", "--budget", "4s", mix, "data.weights=a=3 b=1", "model.layers=1", "model.dim=64",
		"--out", run)
	w.object(exitOK, "ckpt", "verify", run)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"too small": {[]string{"--budget", "1ms", data, "--dry-run"}, "too small for one step"},
		"no time":   {[]string{"--budget", "soon", data, "--dry-run"}, "soon"},
		"zero":      {[]string{"--budget", "0", data, "--dry-run"}, "above 0"},
		"no data":   {[]string{"--budget", "1m", "seed=2", "--dry-run"}, "data.path"},
		"not built": {[]string{"--budget", "1m", "data.path=" + w.path("text"), "--dry-run"}, "anneal data build"},
		"no mixture": {[]string{"--budget", "1m", "data.mix=a=" + w.path("data") + ",b=" + w.path("text"), "--dry-run"},
			"anneal data build"},
		"many ranks": {[]string{"--budget", "1m", data, "parallel.ranks=2", "--dry-run"}, "how many ranks"},
	} {
		code, _, errs := anneal(append([]string{"train"}, c.args...)...)
		if code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, %s", name, code, errs)
		}
	}
}
