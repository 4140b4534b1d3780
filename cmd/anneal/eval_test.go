package main

import (
	"os"
	"strings"
	"testing"
)

// Paths of data sets may have commas and equals signs, with and without a name, alone and with others.
func TestEvalTakesAnyPathOfData(t *testing.T) {
	w := newWorkshop(t)
	run, comma, equals := w.path("run"), w.path("q,r/dd"), w.path("k=v")
	for _, dir := range []string{comma, equals} {
		if err := os.CopyFS(dir, os.DirFS(w.path("data"))); err != nil {
			t.Fatal(err)
		}
	}
	w.object(exitOK, "train", w.path("run.yaml"), "--out", run, "train.steps=1")
	loss := w.object(exitOK, "eval", run, "--data", w.path("data"))["loss"]
	for _, data := range []string{comma, equals, "a=" + comma, "a=" + w.path("data")} {
		if got := w.object(exitOK, "eval", run, "--data", data)["loss"]; got != loss {
			t.Errorf("--data %s: loss %v, want %v", data, got, loss)
		}
	}
	v := w.object(exitOK, "eval", run, "--data", "a="+w.path("data"), "--data", "b="+comma)
	var names []string
	for _, s := range v["sources"].([]any) {
		names = append(names, s.(map[string]any)["name"].(string))
	}
	if got := strings.Join(names, " "); got != "a b" {
		t.Errorf("the data sets are named %s", got)
	}
	for says, data := range map[string][]string{
		`two data sets have the name "a"`: {"a=" + comma, "a=" + equals},
		"is not NAME=DIR":                 {"a=" + comma, "a b=" + equals},
	} {
		code, _, errs := anneal("eval", run, "--data", data[0], "--data", data[1])
		if code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("%v: exit %d, without %q:\n%s", data, code, says, errs)
		}
	}
	code, _, errs := anneal("eval", run, "--data", "a="+w.path("data"), "--data", "b="+w.path("none,x"))
	if code != exitData || !strings.Contains(errs, w.path("none,x")) {
		t.Errorf("a path that does not exist: exit %d\n%s", code, errs)
	}
}
