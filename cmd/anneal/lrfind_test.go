package main

import (
	"os"
	"strings"
	"testing"
)

// A range test suggests a range, draws it, and writes only the requested picture.
func TestLRFind(t *testing.T) {
	w := newWorkshop(t)
	before, err := os.ReadDir(w.path(""))
	if err != nil {
		t.Fatal(err)
	}
	for i, optimizer := range valuesOf(t, "optimizer.name") {
		args := []string{
			"lr-find", w.path("run.yaml"), "optimizer.name=" + optimizer, "--steps", "40", "--svg", w.path("lr.svg"),
		}
		if strings.HasPrefix(optimizer, "sgd") {
			args = append(args, "--high", "1000") // plain gradients need larger rates
		}
		v := w.object(exitOK, args...)
		w.keys(v, "low", "high", "steepest_lr", "lowest_lr", "lowest_loss", "diverges_lr", "points")
		if low, high := v["low"].(float64), v["high"].(float64); !(1e-6 < low && low < high && high < 1000) {
			t.Errorf("%s: rates from %v to %v", optimizer, low, high)
		}
		if i > 0 {
			continue
		}
		if code, out, errs := anneal(args...); code != exitOK ||
			!strings.Contains(out, "worth a try    optimizer.lr from") || !strings.Contains(out, "┤") {
			t.Errorf("%s: exit %d; no chart or no suggestion in\n%s%s", optimizer, code, out, errs)
		}
		if svg, err := os.ReadFile(w.path("lr.svg")); err != nil || !strings.Contains(string(svg), "worth a try") {
			t.Errorf("%s: the picture has %d bytes, %v", optimizer, len(svg), err)
		}
	}
	os.Remove(w.path("lr.svg"))
	after, err := os.ReadDir(w.path(""))
	if err != nil || len(after) != len(before) {
		t.Errorf("the directory held %d entries, now %d, %v", len(before), len(after), err)
	}
	w.object(exitUsage, "lr-find", w.path("run.yaml"), "--low", "1", "--high", "0.1")
	w.object(exitUsage, "lr-find", w.path("run.yaml"), "--steps", "5")
	for _, svg := range []string{w.path(""), w.path("run.yaml/lr.svg")} { // refused before the steps
		w.object(exitUsage, "lr-find", w.path("run.yaml"), "--steps", "1000000000", "--svg", svg)
	}
	w.object(exitUsage, "lr-find", w.path("run.yaml"), "--low", "1e-9", "--high", "1e-8")
	w.object(exitData, "lr-find", w.path("run.yaml"), "data.path="+w.path("text"))
}

// valuesOf returns the names that a key can have.
func valuesOf(t *testing.T, key string) []string {
	t.Helper()
	v := workshop{t, ""}.object(exitOK, "explain", key)
	var names []string
	for _, n := range v["values"].([]any) {
		names = append(names, n.(string))
	}
	return names
}

// A branch ends like a run of its config from the start. A directory that holds a run is refused, and so is a step
// without a checkpoint.
func TestBranch(t *testing.T) {
	w := newWorkshop(t)
	w.object(exitOK, "train", w.path("run.yaml"), "schedule.name=wsd", "checkpoint.keep=10", "--out", w.path("long"))
	want := w.object(exitOK, "train", w.path("run.yaml"), "schedule.name=wsd", "train.steps=12", "--out",
		w.path("short"))
	args := []string{"branch", w.path("long"), "train.steps=12", "--out", w.path("branch")}
	got := w.object(exitOK, args...)
	w.keys(got, "step", "weights_hash", "val_bits_per_byte")
	if got["weights_hash"] != want["weights_hash"] || got["step"] != 12.0 ||
		got["val_bits_per_byte"] != want["val_bits_per_byte"] {
		t.Errorf("the branch ends at step %v with %v, %v bits/byte; the run at %v with %v, %v",
			got["step"], got["weights_hash"], got["val_bits_per_byte"], want["step"], want["weights_hash"],
			want["val_bits_per_byte"])
	}
	w.object(exitUsage, args...)
	w.object(exitUsage, "branch", w.path("text"), "--out", w.path("other"))
	w.object(exitUsage, "branch", w.path("long"), "schedule.name=linear", "train.steps=10", "--out", w.path("other"))
	for _, step := range []string{"7", "0"} {
		w.object(exitCheckpoint, "branch", w.path("long"), "train.steps=12", "--at", step, "--out", w.path("other"))
	}
	if _, err := os.Stat(w.path("other")); err == nil {
		t.Error("a branch that was refused left a directory")
	}
}
