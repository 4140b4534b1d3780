package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/scaling"
)

// A ladder of toy models fills its budget, and its points can be fitted. If a study has lost runs, only these are
// trained again, to the same losses.
func TestScalingRun(t *testing.T) {
	w := newWorkshop(t)
	study := w.path("study")
	args := []string{"scaling", "run", "--budget", "10s", "data.path=" + w.path("data"), "model.context=32",
		"train.batch_tokens=128", "train.eval_tokens=256", "precision=fp32", "--out", study}
	budget := 10 // seconds; more on a slow machine
	code, out, errs := anneal(append(args, "--json")...)
	for ; code == exitUsage && strings.Contains(errs, "too small") && budget < 320; budget *= 2 {
		args[3] = fmt.Sprintf("%ds", 2*budget)
		code, out, errs = anneal(append(args, "--json")...)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); code != exitOK || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	w.keys(v, "rungs", "losses", "out", "seconds")
	if s := v["seconds"].(float64); s > 3*float64(budget) {
		t.Errorf("a budget of %d s took %.1f s", budget, s)
	}
	before, err := os.ReadFile(filepath.Join(study, "points.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rungs := len(v["rungs"].([]any))
	if n := strings.Count(string(before), "\n"); rungs < 3 || n != 1+4*rungs {
		t.Errorf("%d sizes, %d lines:\n%s", rungs, n, before)
	}
	if points, err := scaling.ReadPoints(bytes.NewReader(before)); err != nil || len(points) != 4*rungs {
		t.Errorf("%d points, %v", len(points), err)
	}

	// A kill may leave a run whose loss is not recorded, and another run missing.
	ladder := filepath.Join(study, "ladder.json")
	text, err := os.ReadFile(ladder)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, `-x1":`) && !strings.Contains(line, `-x2":`) {
			kept = append(kept, line)
		}
	}
	if err := os.WriteFile(ladder, []byte(strings.Join(kept, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	lost, err := filepath.Glob(filepath.Join(study, "*-x2"))
	if err != nil || len(lost) != rungs {
		t.Fatalf("%v, %v", lost, err)
	}
	for _, dir := range lost {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	again := w.object(exitOK, args...)
	if !reflect.DeepEqual(v["losses"], again["losses"]) {
		t.Errorf("the losses were %v, and are %v after resuming", v["losses"], again["losses"])
	}
	if after, err := os.ReadFile(filepath.Join(study, "points.csv")); err != nil || string(after) != string(before) {
		t.Errorf("the points were\n%s\nand are after resuming\n%s", before, after)
	}

	unlock, err := checkpoint.Lock(study)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := anneal(args...); code == exitOK || !strings.Contains(errs, "is locked by") {
		t.Errorf("beside another process: exit %d: %s", code, errs)
	}
	unlock()

	planned := w.object(exitOK, append(args, "--dry-run")...)
	if !reflect.DeepEqual(planned["rungs"], v["rungs"]) {
		t.Errorf("a dry run beside the study plans %v", planned["rungs"])
	}
	replaced := bytes.Replace(text, []byte(`"data": [
    "`), []byte(`"data": [
    "0`), 1)
	if err := os.WriteFile(ladder, replaced, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := anneal(args...); code != exitData || !strings.Contains(errs, "trained on other data") {
		t.Errorf("after the data was replaced: exit %d: %s", code, errs)
	}
	w.object(exitOK, "data", "build", "--tokenizer", w.path("tok.json"), "--out", w.path("whole"), "--val", "0",
		w.path("text"))
	if code, _, errs := anneal("scaling", "run", "--budget", "1h", "data.path="+w.path("whole"), "model.context=32",
		"--out", w.path("none")); code != exitData || !strings.Contains(errs, "no validation split") ||
		strings.Contains(errs, "measured") {
		t.Errorf("without held-out text: exit %d: %s", code, errs)
	}

	for want, mistaken := range map[string][]string{
		"--dry-run": args[:len(args)-2],
		"schedule.horizon": {"scaling", "run", "--budget", "1h", args[4], "model.context=32", "schedule.horizon=1000",
			"--out", w.path("none")},
		"train.length_warmup": {"scaling", "run", "--budget", "1h", args[4], "model.context=32",
			"train.length_warmup=16 over 50%", "--out", w.path("none")},
		"another study":   append(args, "seed=7"),
		"is too small":    {"scaling", "run", "--budget", "10ms", args[4], "model.context=32", "--out", w.path("none")},
		"from the budget": {"scaling", "run", "--budget", "1h", args[4], "model.dim=64", "--out", w.path("none")},
		"from run to run": {"scaling", "run", "--budget", "1h", args[4], "train.batch_ramp=512 over 40000 tokens",
			"--out", w.path("none")},
		"data.path": {"scaling", "run", "--budget", "1h", "--out", w.path("none")},
	} {
		if code, _, errs := anneal(mistaken...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("exit %d, without %q: %s", code, want, errs)
		}
	}
}

// Learning rates fall from size to size, starting at the rate given for the smallest, if any. A plan writes nothing.
func TestScalingRunPlansFirst(t *testing.T) {
	w := newWorkshop(t)
	rates := func(more ...string) (list []float64) {
		args := append([]string{"scaling", "run", "--budget", "10m", "data.path=" + w.path("data"), "model.context=32",
			"train.batch_tokens=128", "train.eval_tokens=256", "precision=fp32", "--dry-run"}, more...)
		for _, r := range w.object(exitOK, args...)["rungs"].([]any) {
			list = append(list, r.(map[string]any)["lr"].(float64))
		}
		return list
	}
	for want, list := range map[float64][]float64{0: rates(), 0.01: rates("optimizer.lr=0.01")} {
		if len(list) < 3 || !slices.IsSortedFunc(list, func(a, b float64) int { return cmp.Compare(b, a) }) ||
			list[0] == list[1] || want != 0 && list[0] != want {
			t.Errorf("rates %v", list)
		}
	}
	_, out, _ := anneal("scaling", "run", "--budget", "10m", "data.path="+w.path("data"), "model.context=32",
		"train.batch_tokens=128", "train.eval_tokens=256", "precision=fp32", "--dry-run")
	rows := regexp.MustCompile(` × [0-9]+ +([0-9.]+M) `).FindAllStringSubmatch(out, -1)
	if n := len(rows); n < 3 || !strings.Contains(out, "the largest trains "+rows[n-1][1]+" parameters for") {
		t.Errorf("the last line and the table differ:\n%s", out)
	}
}
