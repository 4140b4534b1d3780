package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A command that needs the newest checkpoint of a run uses an older one only with --allow-older, and then says so.
func TestOlderCheckpointsAreUsedOnlyWhenAskedFor(t *testing.T) {
	w := newWorkshop(t)
	run := w.path("run")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", run)
	newest := filepath.Join(run, "checkpoints", "step-00000020", "model.safetensors")
	flip(t, newest)
	exported := w.path("exported")
	for _, args := range [][]string{
		{"generate", run, "--max-tokens", "1"}, {"eval", run, "--data", w.path("data")}, {"export", run, exported},
		{"ckpt", "hash", run},
	} {
		code, out, errs := anneal(args...)
		if code != exitCheckpoint || !strings.Contains(errs, "step-00000020: model.safetensors") ||
			!strings.Contains(errs, "step 15") {
			t.Errorf("anneal %s: exit %d, want %d with the damage and the step that can be used\n%s%s",
				args, code, exitCheckpoint, out, errs)
		}
		if _, err := os.Stat(exported); err == nil {
			t.Fatal("an export that was refused left a directory")
		}
		_, _, errs = anneal(append(args, "--allow-older")...)
		if !strings.Contains(errs, "warning: step-00000020: model.safetensors") {
			t.Errorf("anneal %s --allow-older does not say what was left out:\n%s", args, errs)
		}
		os.RemoveAll(exported)
		v := w.object(exitOK, append(args, "--allow-older")...)
		if damaged, _ := v["damaged"].([]any); v["step"] != 15.0 || len(damaged) != 1 {
			t.Errorf("anneal %s --allow-older: step %v, damaged %v; want step 15 and one",
				args, v["step"], v["damaged"])
		}
		os.RemoveAll(exported)
	}
	if code, _, errs := anneal("train", w.path("run.yaml"), "--init-from", run, "--out", w.path("next")); code !=
		exitCheckpoint {
		t.Errorf("train --init-from: exit %d, want %d\n%s", code, exitCheckpoint, errs)
	}
}

// flip changes a bit in the middle of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
