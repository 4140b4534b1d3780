package run

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/train"
	"anneal/train/traintest"
)

// stoppedBranch makes a branch off step 6 of a run, stopped after step 8, and returns its directory.
func stoppedBranch(t *testing.T) string {
	t.Helper()
	trunk, dir := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "branch")
	mustRun(t, Options{Config: with(t, traintest.Data(t), "schedule.name=constant", "train.steps=6",
		"checkpoint.every=6"), Dir: trunk})
	cfg, err := BranchConfig(trunk, []string{"train.steps=12", "checkpoint.every=100", "checkpoint.keep=2"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r, err := Branch(ctx, Options{Config: cfg, Dir: dir, OnProgress: func(e train.Event) {
		if e.Step == 8 {
			stop()
		}
	}}, trunk, 6)
	if err != nil || r.Step != 8 {
		t.Fatalf("%+v, %v", r, err)
	}
	return dir
}

// loseCheckpoints takes the checkpoints of a run away.
func loseCheckpoints(t *testing.T, dir string) {
	t.Helper()
	if err := os.Rename(runDir(dir).checkpoints(), filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
}

// remove removes files of a run.
func remove(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// A branch whose checkpoints are gone does not start over: its first weights are not those of the seed. A branch of an
// early version, without branch.json, is known by its journal and metrics, also before its first step.
func TestABranchWithoutItsCheckpointsDoesNotStartOver(t *testing.T) {
	dir := stoppedBranch(t)
	loseCheckpoints(t, dir)
	for _, lost := range [][]string{nil, {"branch.json"}, {"metrics.jsonl"}} {
		remove(t, dir, lost...)
		before := contents(t, dir)
		_, resumed := Resume(context.Background(), Options{Dir: dir})
		if !errors.Is(resumed, checkpoint.ErrNone) || !strings.Contains(resumed.Error(), "anneal branch RUN --at 6") {
			t.Errorf("without %v it is resumed: %v", lost, resumed)
		}
		s := session{Options: Options{Dir: dir}, dir: runDir(dir), cfg: mustLoad(t, dir)}
		for _, advice := range []string{Remedy(dir), s.saveError(9, os.ErrClosed).Error()} {
			if strings.Contains(advice, "starts over") || !strings.Contains(advice, "anneal branch RUN --at 6") {
				t.Errorf("without %v the advice is %q", lost, advice)
			}
		}
		for to, want := range map[int]string{0: "--to 6", 7: "--at 6"} {
			_, err := Rewind(dir, RewindOptions{To: to})
			if lost == nil && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("without %v it goes back to step %d: %v", lost, to, err)
			}
		}
		os.RemoveAll(runDir(dir).checkpoints()) // which a rewind makes
		if contents(t, dir) != before {
			t.Errorf("without %v the run has changed", lost)
		}
	}
}

// A branch goes back no further than to its first checkpoint, which stays where it is.
func TestABranchGoesBackToItsBeginningOnly(t *testing.T) {
	for _, lost := range [][]string{nil, {"branch.json"}} {
		dir := stoppedBranch(t)
		remove(t, dir, lost...)
		var wrong *RewindError
		if _, err := Rewind(dir, RewindOptions{To: 0}); !errors.As(err, &wrong) ||
			!strings.Contains(err.Error(), "began with step 6") || !strings.Contains(err.Error(), "--to 6") {
			t.Errorf("without %v it goes back to step 0: %v", lost, err)
		}
		if list, err := checkpoint.List(runDir(dir).checkpoints()); err != nil || len(list) != 2 {
			t.Errorf("without %v: the checkpoints are %+v, %v", lost, list, err)
		}
		if r, err := Resume(context.Background(), Options{Dir: dir}); err != nil || r.Step != 12 {
			t.Errorf("without %v: %+v, %v", lost, r, err)
		}
	}
}

// A branch that diverges does not go back by itself to before its beginning.
func TestADivergedBranchDoesNotGoBackBeforeItsBeginning(t *testing.T) {
	trunk, dir := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "branch")
	cfg := with(t, traintest.Data(t), "schedule.name=constant", "train.steps=10", "checkpoint.every=10")
	mustRun(t, Options{Config: cfg, Dir: trunk})
	branch, err := BranchConfig(trunk, []string{"train.steps=16", "checkpoint.every=7", "guard.on_divergence=rewind",
		"guard.max_skips=1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Branch(context.Background(), Options{Config: branch, Dir: dir}, trunk, 10); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(runDir(dir).checkpoints(), "step-00000016")),
		os.RemoveAll(filepath.Join(runDir(dir).checkpoints(), "step-00000014"))); err != nil {
		t.Fatal(err)
	}
	again, err := rewindDiverged(&DivergedError{Step: 13, First: 13, Skips: 1, Dir: dir},
		Options{Dir: dir, Warn: func(string) {}})
	if err != nil || !again {
		t.Fatalf("%v, %v", again, err)
	}
	if got := mustLoad(t, dir).Data.Skip.String(); got != "80:104" {
		t.Errorf("it leaves out the samples %s, want those of steps 11 to 13", got)
	}
	if _, ok := runDir(dir).lastCheckpoint(); !ok {
		t.Error("it has set its first checkpoint aside")
	}
}

// What shows that a run had a checkpoint protects its metrics, however seldom it saves, until it is taken back to its
// start.
func TestLostCheckpointsAreNoticedHoweverSeldomARunSaves(t *testing.T) {
	data := traintest.Data(t)
	for _, c := range []struct {
		name string
		set  []string
		lost []string // what else is gone
		want string
	}{
		{"no regular checkpoints", []string{"checkpoint.every=0"}, []string{"journal.jsonl"}, "exit.json says"},
		{"rare checkpoints", []string{"checkpoint.every=200"}, nil, "journal"},
		{"automatic rewinds", []string{"guard.on_divergence=rewind"}, nil, "journal"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		mustRun(t, Options{Config: with(t, data, append(c.set, "train.steps=4")...), Dir: dir})
		WriteExit(dir, Exit{})
		loseCheckpoints(t, dir)
		remove(t, dir, c.lost...)
		_, err := Resume(context.Background(), Options{Dir: dir})
		if lines := len(readMetrics(t, dir)); lines != 4 || !errors.Is(err, checkpoint.ErrNone) ||
			!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--to 0") {
			t.Errorf("%s: %d lines of metrics are left: %v", c.name, lines, err)
		}
		if _, err := Rewind(dir, RewindOptions{To: 0}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if r, err := Resume(context.Background(), Options{Dir: dir}); err != nil || r.Step != 4 {
			t.Errorf("%s: taken back to its start: %+v, %v", c.name, r, err)
		}
	}
}

// Evidence counts only since the run last began at step 0, and metrics that do not begin there are evidence.
func TestWhatShowsThatARunHadACheckpoint(t *testing.T) {
	line := func(event string, step int) string {
		text, _ := json.Marshal(JournalLine{Event: event, Step: step})
		return string(text) + "\n"
	}
	for _, c := range []struct {
		name, journal, metrics, exit string
		want                         bool
	}{
		{"nothing", "", "", "", false},
		{"killed at once", line("started", 0), `{"step":1}` + "\n", "", false},
		{"failed at once", line("started", 0) + line("failed", 0), "", `{"code":3,"saved":-1}`, false},
		{"stopped", line("started", 0) + line("stopped", 3), "", "", true},
		{"resumed", line("started", 0) + line("started", 3), "", "", true},
		{"saved and failed", line("started", 0) + line("failed", 9), "", `{"code":3,"saved":5}`, true},
		{"taken back to the start", line("started", 0) + line("ended", 9) + line("rewound", 0), "",
			`{"code":0,"saved":9}`, false},
		{"and begun again", line("ended", 9) + line("rewound", 0) + line("started", 0), `{"step":1,"rewound":true}` +
			"\n" + `{"step":1}` + "\n", "", false},
		{"begun again by the same process", line("started", 0) + line("diverged", 9) + line("rewound", 0) +
			line("continued", 0), `{"step":1,"rewound":true}` + "\n", "", false},
		{"taken back to a checkpoint", line("started", 0) + line("rewound", 5), "", "", true},
		{"metrics of a later start", "", `{"step":5}` + "\n", "", true},
		{"an exit.json of an early version", line("started", 0), "", `{"code":0}`, false},
	} {
		d := runDir(t.TempDir())
		for path, text := range map[string]string{d.journal(): c.journal, d.metrics(): c.metrics, d.exit(): c.exit} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if why, err := d.hadCheckpoint(config.Default()); (why != "") != c.want || err != nil {
			t.Errorf("%s: %q, %v", c.name, why, err)
		}
	}
}

// A branch.json that cannot be read is reported, because the run may be a branch.
func TestADamagedBranchPointIsAnError(t *testing.T) {
	for _, text := range []string{"", "{", `{"step":-1}`} {
		d := runDir(t.TempDir())
		if err := os.WriteFile(d.branch(), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if b, err := d.branched(); err == nil || !strings.Contains(err.Error(), "restore it") {
			t.Errorf("%q: %+v, %v", text, b, err)
		}
	}
}
