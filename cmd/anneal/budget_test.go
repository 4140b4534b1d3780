package main

import (
	"strings"
	"testing"
)

// derives checks the one table of a budget whose ranks are given.
func (w workshop) derives(v map[string]any, ranks int) {
	w.t.Helper()
	values := map[string]string{}
	for _, d := range v["derived"].([]any) {
		d := d.(map[string]any)
		values[d["key"].(string)] = d["value"].(string)
	}
	_, derived := values["parallel.ranks"]
	if derived || values["parallel.zero"] != "1" || values["train.steps"] == "" {
		w.t.Errorf("%d ranks: derived are %v", ranks, values)
	}
}

func TestBudgetSizesARunWithoutAConfig(t *testing.T) {
	w := newWorkshop(t)
	data := "data.path=" + w.path("data")
	v := w.object(exitOK, "train", "--budget", "1m", data, "model.layers=2", "model.dim=64", "--dry-run")
	w.keys(v, "derived", "predicted")
	_, out, errs := anneal("train", "--budget", "5s", data, "model.layers=1", "model.dim=64", "--dry-run")
	if !strings.Contains(errs, "  1 layer of width 64, context 256: ") {
		t.Errorf("no speed is shown:\n%s", errs)
	}
	if strings.Contains(out, "not predicted") {
		t.Errorf("a time is predicted and not predicted:\n%s", out)
	}
	_, _, errs = anneal("train", "--budget", "5s", data, "model.layers=1", "model.dim=64", "train.steps=9999",
		"train.minutes=0", "--dry-run")
	if !strings.Contains(errs, "warning: the text is read ") {
		t.Errorf("no word of so many epochs:\n%s", errs)
	}
	w.keys(v["predicted"].(map[string]any), "bits_per_byte", "seconds", "memory_bytes", "epochs")
	for _, d := range v["derived"].([]any) {
		w.keys(d.(map[string]any), "key", "value", "rule", "source")
	}
	shared := w.object(exitOK, "train", "--budget", "5s", data, "model.layers=1", "model.dim=64", "threads=2",
		"--ranks", "2", "--dry-run")
	w.derives(shared, 2)
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
		"a mesh": {[]string{"--budget", "1m", data, "parallel.tensor=2", "--dry-run"}, "remove parallel.tensor"},
		"threadless": {[]string{"--budget", "1m", data, "--ranks", "3", "threads=2", "--dry-run"},
			"need one thread each"},
	} {
		code, _, errs := anneal(append([]string{"train"}, c.args...)...)
		if code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, %s", name, code, errs)
		}
	}
}

// A rank has an equal share of its host's memory, and the smallest share counts.
func TestTheLeastMemoryOfAnyRankCounts(t *testing.T) {
	for want, rooms := range map[int64][]roomOf{
		0:  {{"a", 0}, {"b", 0}},
		5:  {{"a", 10}, {"a", 12}, {"b", 7}},
		7:  {{"a", 100}, {"b", 7}, {"c", 0}},
		20: {{"a", 20}},
	} {
		if got := leastRoom(rooms); got != want {
			t.Errorf("%v: %d, want %d", rooms, got, want)
		}
	}
}
