package run

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/train/traintest"
)

// editedRun makes a run whose optimizer.lr changes after step 4, and returns its directory.
func editedRun(t *testing.T, data string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: with(t, data, constantOfTest...), Dir: dir})
	if _, err := Rewind(dir, RewindOptions{To: 4}); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, "optimizer.lr=0.01")
	resumeTo(t, dir)
	return dir
}

var constantOfTest = []string{
	"schedule.name=constant", "schedule.warmup=1", "optimizer.lr=0.001", "train.steps=8", "checkpoint.every=2",
	"checkpoint.keep=20",
}

// branchOf makes a branch and returns its directory and what it warned of.
func branchOf(t *testing.T, from string, at int, overrides ...string) (dir string, r *Result, warned string) {
	t.Helper()
	cfg, err := BranchConfig(from, overrides)
	if err != nil {
		t.Fatal(err)
	}
	var s said
	dir = filepath.Join(t.TempDir(), "branch")
	if r, err = Branch(context.Background(), Options{Config: cfg, Dir: dir, Warn: s.warn}, from, at); err != nil {
		t.Fatal(err)
	}
	return dir, r, s.all()
}

// branchPointOf returns where a branch would begin, or the error as text.
func branchPointOf(t *testing.T, from string, overrides ...string) (int, string) {
	t.Helper()
	cfg, err := BranchConfig(from, overrides)
	if err != nil {
		t.Fatal(err)
	}
	at, err := BranchPoint(from, cfg)
	if err != nil {
		return at, err.Error()
	}
	return at, ""
}

// A branch is compared with what its run was trained with at each step, not with the run's present config.yaml, also if
// the run is itself such a branch. The run's journal holds the change.
func TestABranchKnowsFormerConfigurations(t *testing.T) {
	data := traintest.Data(t)
	dir := editedRun(t, data)
	changed := func(e string) bool {
		return strings.HasPrefix(e, "warning: ") && strings.Contains(e, "has changed since step 4") &&
			strings.Contains(e, "optimizer.lr: 0.001 → 0.01")
	}
	if events := readJournal(t, dir); !slices.ContainsFunc(events, changed) {
		t.Errorf("the journal does not say that the configuration changed: %q", events)
	}
	const only = "equal only up to step 0: the next step has another learning rate"
	if at, why := branchPointOf(t, dir, "train.steps=10"); !strings.Contains(why, only) ||
		!strings.Contains(why, "was changed after step 4") {
		t.Errorf("it branches at step %d: %s", at, why)
	}
	if _, why := branchPointOf(t, dir, "train.steps=10", "optimizer.lr=0.03"); !strings.Contains(why, only) ||
		strings.Contains(why, "was changed") {
		t.Errorf("it never had the rate of the branch: %s", why)
	}
	branch, _, warned := branchOf(t, dir, 8, "train.steps=10")
	if !strings.Contains(warned, "from step 1 on, "+dir+" used another learning rate") ||
		!strings.Contains(warned, "Steps 1 to 4 had other values than the branch, which will not end like a run from "+
			"the start\n  optimizer.lr: 0.001 → 0.01") {
		t.Errorf("it warned %q", warned)
	}
	if at, why := branchPointOf(t, branch, "train.steps=12"); !strings.Contains(why, only) {
		t.Errorf("a branch of the branch begins at step %d: %s", at, why)
	}
}

// A branch with a former value begins while the run had it, and is the run from the start.
func TestABranchOfAFormerConfiguration(t *testing.T) {
	data := traintest.Data(t)
	dir, back := editedRun(t, data), []string{"optimizer.lr=0.001", "train.steps=10"}
	if at, why := branchPointOf(t, dir, back...); at != 4 {
		t.Fatalf("it begins at step %d, want 4: %s", at, why)
	}
	_, r, warned := branchOf(t, dir, 4, back...)
	want := mustRun(t, Options{Config: with(t, data, append(slices.Clone(constantOfTest), back...)...),
		Dir: filepath.Join(t.TempDir(), "whole")})
	if r.WeightsHash != want.WeightsHash || warned != "" {
		t.Errorf("the branch ends with %.12s, the run from the start with %.12s; warned %q",
			r.WeightsHash, want.WeightsHash, warned)
	}
	for step, n := range map[int64]int{4: 0, 6: 1, 8: 1} { // a rewind goes back to a state, and to its past
		var s state
		if _, err := checkpoint.LoadStepState(runDir(dir).checkpoints(), step, &s); err != nil || len(s.Past) != n {
			t.Errorf("the state of step %d has %d former configurations, %v; want %d", step, len(s.Past), err, n)
		}
	}
}

// The first difference between a run and a branch is named.
func TestDifferencesOfSchedulesAreNamed(t *testing.T) {
	data := traintest.Data(t)
	for override, want := range map[string]string{
		"optimizer.lr=0.002": "learning rate", "train.micro_batch=2": "micro-batch",
		"train.batch_tokens=128":       "batch size",
		"train.length_warmup=8 over 6": "sequence length", "schedule.weight_decay=linear": "weight decay",
		"optimizer.beta2=0.9": "",
	} {
		_, got := agreement([]stretch{{8, with(t, data, constantOfTest...)}},
			with(t, data, append(slices.Clone(constantOfTest), override)...), 8)
		if got != want {
			t.Errorf("%s: the difference is %q, want %q", override, got, want)
		}
	}
}
