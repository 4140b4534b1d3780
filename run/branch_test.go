package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/train/traintest"
)

// contents hashes every file below dir.
func contents(t testing.TB, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n", path, len(data))
		sum.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// SCH-4: a decay that branches off a stable checkpoint is the run of that length from the start, bit for bit; the run
// it comes from is left as it is.
func TestABranchIsTheRunFromTheStart(t *testing.T) {
	data := traintest.Data(t)
	for _, c := range []struct {
		name          string
		trunk, branch []string
		want          int // the step it begins at
	}{
		{"wsd", []string{"schedule.name=wsd", "schedule.warmup=3"},
			[]string{"train.steps=10", "train.eval_answers=true"}, 8},
		{"constant", []string{"schedule.name=constant", "schedule.warmup=3"},
			[]string{"schedule.name=wsd", "train.steps=12", "schedule.decay_fraction=0.5"}, 6},
		{"ramps", []string{"schedule.name=wsd", "schedule.warmup=3", "train.batch_ramp=64 over 600 tokens",
			"train.length_warmup=8 over 6"}, []string{"train.steps=11"}, 9},
	} {
		trunk, branch, alone := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run"),
			filepath.Join(t.TempDir(), "run")
		mustRun(t, Options{Config: with(t, data, c.trunk...), Dir: trunk})
		before := contents(t, trunk)
		cfg, err := BranchConfig(trunk, c.branch)
		if err != nil {
			t.Fatal(err)
		}
		at, err := BranchPoint(trunk, cfg)
		if err != nil || at != c.want {
			t.Errorf("%s: branches at step %d, %v; want %d", c.name, at, err, c.want)
			continue
		}
		got, err := Branch(context.Background(), Options{Config: cfg, Dir: branch,
			Warn: func(s string) { t.Errorf("%s: warned: %s", c.name, s) }}, trunk, at)
		if err != nil {
			t.Fatal(err)
		}
		want := mustRun(t, Options{Config: with(t, data, append(c.trunk, c.branch...)...), Dir: alone})
		if got.WeightsHash != want.WeightsHash || got.OptimizerHash != want.OptimizerHash ||
			got.Tokens != want.Tokens || got.ValLoss != want.ValLoss {
			t.Errorf("%s: the branch ends with weights %.12s, %d tokens, loss %v; the run from the start with "+
				"%.12s, %d, %v",
				c.name, got.WeightsHash, got.Tokens, got.ValLoss, want.WeightsHash, want.Tokens, want.ValLoss)
		}
		if contents(t, trunk) != before {
			t.Errorf("%s: the run that was branched from changed", c.name)
		}
		again := resumedBranch(t, branch, at)
		if again.WeightsHash != want.WeightsHash {
			t.Errorf("%s: the branch resumed at its beginning ends with %.12s, want %.12s",
				c.name, again.WeightsHash, want.WeightsHash)
		}
	}
}

// resumedBranch takes a branch from its first checkpoint to its end.
func resumedBranch(t testing.TB, run string, at int) *Result {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(run)); err != nil {
		t.Fatal(err)
	}
	list, err := checkpoint.List(filepath.Join(dir, "checkpoints"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.Step > int64(at) {
			os.RemoveAll(filepath.Join(filepath.Join(dir, "checkpoints"), e.Name))
		}
	}
	r, err := Resume(context.Background(), Options{Dir: dir, Warn: func(s string) {
		if strings.Contains(s, "no checkpoint") {
			t.Error(s)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Up to where two runs agree takes in all that is scheduled. A decay of weights that ends with the run depends on its
// length from the second step on.
func TestRunsAgreeWhileAllSchedulesDo(t *testing.T) {
	data := traintest.Data(t)
	for _, c := range []struct {
		both, other []string
		want        int
	}{
		{nil, nil, 12},
		{nil, []string{"train.steps=100"}, 11},
		{[]string{"schedule.weight_decay=linear"}, []string{"train.steps=100"}, 1},
		{nil, []string{"schedule.weight_decay=linear"}, 1},
		{[]string{"optimizer.name=muon"}, []string{"schedule.momentum_warmup=10"}, 0},
		{[]string{"optimizer.name=muon", "schedule.momentum_warmup=10"}, []string{"train.steps=100"}, 11},
	} {
		both := append([]string{"schedule.name=wsd", "schedule.warmup=3"}, c.both...)
		past := []stretch{{20, with(t, data, both...)}}
		if got, _ := agreement(past, with(t, data, append(both, c.other...)...), 12); got != c.want {
			t.Errorf("%v and with %v: %d steps, want %d", both, c.other, got, c.want)
		}
	}
}

// Where the past of a branch is not what its schedule says, no step is chosen for the user, and a chosen one is warned
// of.
func TestABranchWithAnotherPastIsNotSilent(t *testing.T) {
	data, trunk := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: with(t, data, "schedule.warmup=1", "checkpoint.every=5"), Dir: trunk}) // cosine
	cfg, err := BranchConfig(trunk, []string{"train.steps=20", "optimizer.weight_decay=0.2"})
	if err != nil {
		t.Fatal(err)
	}
	if at, err := BranchPoint(trunk, cfg); err == nil || !strings.Contains(err.Error(), "equal only up to step 1") ||
		!strings.Contains(err.Error(), "14, 10, 5") {
		t.Errorf("a cosine run is branched from at step %d, %v", at, err)
	}
	one := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: with(t, data, "schedule.warmup=1", "checkpoint.every=100"), Dir: one})
	if at, err := BranchPoint(one, cfg); err == nil || !strings.Contains(err.Error(), "has one checkpoint, of step ") {
		t.Errorf("a run with one checkpoint is branched from at step %d, %v", at, err)
	}
	var said []string
	dir := filepath.Join(t.TempDir(), "branch")
	if _, err := Branch(context.Background(),
		Options{Config: cfg, Dir: dir, Warn: func(s string) { said = append(said, s) }}, trunk, 10); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "from step 2 on") ||
		!strings.Contains(text, "optimizer.weight_decay: 0.1 → 0.2") {
		t.Errorf("said %q", text)
	}
	if _, err := Branch(context.Background(), Options{Config: cfg, Dir: dir}, trunk, 10); !errors.Is(err, ErrExists) {
		t.Errorf("a branch into a directory with a run: %v", err)
	}
	if _, err := Branch(context.Background(), Options{Config: cfg, Dir: t.TempDir()}, trunk, 7); err == nil ||
		!strings.Contains(err.Error(), "no checkpoint of step 7") {
		t.Errorf("a branch from a step without a checkpoint: %v", err)
	}
}

// The state of another optimizer is refused on any number of ranks, of which each holds only some of it: Lion would
// take Adam's mean of gradients for its own. The refusal names what was given, and where.
func TestABranchRefusesTheStateOfAnotherOptimizer(t *testing.T) {
	data, trunk := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: with(t, data, "schedule.warmup=1"), Dir: trunk})
	for _, c := range []struct{ override, want string }{
		{"optimizer.name=lion", "optimizer.name = lion, but the checkpoint has the state of adamw"},
		{"model.rope_theta=5000", "model.rope_theta = 5000, but the weights were trained with 10000"},
	} {
		for _, ranks := range []string{"parallel.ranks=1", "parallel.ranks=2"} {
			cfg, err := BranchConfig(trunk, []string{c.override, ranks, "threads=2", "train.steps=20"})
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "branch")
			_, err = Branch(context.Background(), Options{Config: cfg, Dir: dir}, trunk, 14)
			if err == nil || !strings.Contains(err.Error(), c.want+"\n  at command line: "+c.override) {
				t.Errorf("%s, %s: %v; want %s", c.override, ranks, err, c.want)
			}
			if Exists(dir) {
				t.Errorf("%s, %s: there is a run", c.override, ranks)
			}
		}
	}
}

// A branch does not begin at an older checkpoint than it should without a word: damage is an error that says how to
// choose another.
func TestABranchOffADamagedCheckpointSaysHowToChooseAnother(t *testing.T) {
	data, trunk := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: with(t, data, "schedule.name=constant", "schedule.warmup=1"), Dir: trunk})
	cfg, err := BranchConfig(trunk, []string{"checkpoint.every=1", "train.steps=20"})
	if err != nil {
		t.Fatal(err)
	}
	state := "step-00000014/state.json"
	if err := os.Truncate(filepath.Join(runDir(trunk).checkpoints(), state), 9); err != nil {
		t.Fatal(err)
	}
	_, found := BranchPoint(trunk, cfg)
	_, begun := Branch(context.Background(), Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "branch")}, trunk,
		14)
	for _, err := range []error{found, begun} {
		fault := (*checkpoint.Fault)(nil)
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), "--at STEP branches off another checkpoint") {
			t.Errorf("a branch off damage: %v", err)
		}
	}
}

// A branch that would train nothing is refused, before it is a run; where the step is not given, an earlier one is
// found.
func TestABranchEndsAfterItBegins(t *testing.T) {
	data, trunk := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: with(t, data, "schedule.name=constant", "train.steps=8", "checkpoint.every=4"),
		Dir: trunk})
	for _, c := range []struct{ at, steps, found int }{{8, 5, 4}, {8, 8, 4}, {4, 4, -1}, {4, 3, -1}} {
		cfg, err := BranchConfig(trunk, []string{fmt.Sprintf("train.steps=%d", c.steps)})
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("train.steps = %d is not after step %d", c.steps, c.at)
		dir := filepath.Join(t.TempDir(), "branch")
		_, err = Branch(context.Background(), Options{Config: cfg, Dir: dir}, trunk, c.at)
		if wrong := (config.Problem{}); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || Exists(dir) {
			t.Errorf("%d steps from step %d on: %v", c.steps, c.at, err)
		}
		switch found, err := BranchPoint(trunk, cfg); {
		case c.found < 0 && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%d steps begin at step %d, %v", c.steps, found, err)
		case c.found >= 0 && found != c.found:
			t.Errorf("%d steps begin at step %d, %v; want %d", c.steps, found, err, c.found)
		}
	}
}
