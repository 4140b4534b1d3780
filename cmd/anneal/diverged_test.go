package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands that use weights refuse a run that the guard stopped, with the exit code of divergence, until the run
// continues from an earlier step; --allow-older uses the last checkpoint before the divergence.
func TestARunThatDivergedIsNotUsedUnawares(t *testing.T) {
	w := newWorkshop(t)
	run, out := w.path("run"), w.path("hf")
	w.object(exitDiverged, "train", w.path("run.yaml"), "guard.spike_z=0.001", "guard.window=4",
		"guard.max_skips=3", "train.steps=400", "optimizer.lr=10", "optimizer.weight_decay=0", "checkpoint.every=1",
		"checkpoint.keep=99", "--out", run)
	uses := [][]string{
		{"generate", run, "--max-tokens", "3"}, {"eval", run, "--data", w.path("data")}, {"export", run, out},
	}
	for _, args := range uses {
		v := w.object(exitDiverged, args...)
		if message, _ := v["error"].(string); !strings.Contains(message, run+" diverged: training stopped at step ") ||
			!strings.Contains(message, "anneal rewind") {
			t.Errorf("anneal %s: %s", args[0], message)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the export left something behind")
	}
	w.object(exitOK, "ckpt", "verify", run)
	w.object(exitOK, append(uses[1], "--allow-older")...)
	w.object(exitOK, "rewind", run, "--to", "1")
	if _, err := os.Stat(filepath.Join(run, "diverged.json")); err == nil {
		t.Error("after a rewind the run still counts as diverged")
	}
	w.object(exitOK, uses[1]...)
}
