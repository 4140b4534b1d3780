package main

import (
	"os"
	"strings"
	"testing"
)

// A run that learns from a teacher is resumed and branched like any other, as long as the teacher exists; commands
// that use its weights need no teacher.
func TestRunsWithATeacherGoOn(t *testing.T) {
	w := newWorkshop(t)
	teacher, run := w.path("teacher"), w.path("run")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", teacher)
	want := w.object(exitOK, "train", w.path("run.yaml"), "distill.teacher="+teacher, "seed=2", "train.steps=6",
		"checkpoint.every=2", "checkpoint.keep=9", "schedule.name=constant", "--out", run)
	branch := w.object(exitOK, "branch", run, "--at", "2", "--out", w.path("branch"))
	if branch["weights_hash"] != want["weights_hash"] {
		t.Errorf("branched off at step 2: %v, want %v", branch["weights_hash"], want["weights_hash"])
	}
	w.object(exitOK, "rewind", run, "--to", "2")
	if v := w.object(exitOK, "resume", run); v["weights_hash"] != want["weights_hash"] {
		t.Errorf("resumed at step 2: %v, want %v", v["weights_hash"], want["weights_hash"])
	}
	w.object(exitOK, "rewind", run, "--to", "2")
	if err := os.Rename(teacher, w.path("elsewhere")); err != nil {
		t.Fatal(err)
	}
	w.object(exitOK, "eval", run, "--data", w.path("data"))
	for _, args := range [][]string{{"resume", run}, {"branch", run, "--out", w.path("another")}} {
		said, _ := w.object(exitUsage, args...)["error"].(string)
		if !strings.HasPrefix(said, "distill.teacher: ") {
			t.Errorf("%s without its teacher: %s", args[0], said)
		}
	}
}
