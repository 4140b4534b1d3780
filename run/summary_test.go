package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/train"
	"anneal/train/traintest"
)

// A run's state and figures follow from its files, whatever became of it.
func TestSummariesSayHowRunsFare(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	steps := cfg.Train.Steps
	whole := filepath.Join(t.TempDir(), "whole")
	result := mustRun(t, Options{Config: cfg, Dir: whole})
	appendMetrics := func(lines ...string) func(*testing.T, runDir) {
		return func(t *testing.T, d runDir) {
			old, err := os.ReadFile(d.metrics())
			if err == nil {
				err = os.WriteFile(d.metrics(), append(old, strings.Join(lines, "")...), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	skipped := make([]string, cfg.Guard.MaxSkips)
	for i := range skipped {
		skipped[i] = fmt.Sprintf("{\"step\":%d,\"loss\":null,\"skipped\":true}\n", steps+i+1)
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, d runDir)
		state  RunState
		step   int
		fault  string
	}{
		{"finished", func(*testing.T, runDir) {}, Finished, steps, ""},
		{"stopped", func(t *testing.T, d runDir) {
			replaceIn(t, d.config(), "  steps: ", "  steps: 9")
		}, Stopped, steps, ""},
		{"killed after its checkpoint", func(t *testing.T, d runDir) {
			replaceIn(t, d.config(), "  steps: ", "  steps: 9")
			appendMetrics(fmt.Sprintf("{\"step\":%d,\"loss\":1.5,\"val_loss\":1.25}\n{\"st", steps+1))(t, d)
		}, Stopped, steps, ""},
		{"diverged", appendMetrics(skipped...), Diverged, steps + len(skipped), ""},
		{"diverged, without metrics", func(t *testing.T, d runDir) {
			if err := errors.Join(os.Remove(d.metrics()), d.markDiverged(&DivergedError{Step: steps})); err != nil {
				t.Fatal(err)
			}
		}, Diverged, steps, ""},
		{"almost diverged", appendMetrics(skipped[1:]...), Finished, steps, ""},
		{"running", func(t *testing.T, d runDir) {
			unlock, err := checkpoint.Lock(d.checkpoints())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { unlock() })
			appendMetrics(fmt.Sprintf("{\"step\":%d,\"loss\":1.5}\n", steps+1))(t, d)
		}, Running, steps + 1, ""},
		{"killed", func(t *testing.T, d runDir) { // leaves the lock file, but not the lock
			lock := filepath.Join(d.checkpoints(), ".lock")
			if err := os.WriteFile(lock, []byte(`{"pid":1,"host":"elsewhere"}`), 0o666); err != nil {
				t.Fatal(err)
			}
		}, Finished, steps, ""},
		{"no checkpoint", func(t *testing.T, d runDir) {
			if err := os.RemoveAll(d.checkpoints()); err != nil {
				t.Fatal(err)
			}
		}, NoCheckpoint, 0, ""},
		{"damaged checkpoint", func(t *testing.T, d runDir) {
			list, err := checkpoint.List(d.checkpoints())
			if err == nil {
				err = os.Remove(filepath.Join(d.checkpoints(), list[0].Name, "MANIFEST.json"))
			}
			if err != nil {
				t.Fatal(err)
			}
		}, Damaged, -1, "MANIFEST.json"},
		{"damaged configuration", func(t *testing.T, d runDir) {
			if err := os.WriteFile(d.config(), []byte("model: ["), 0o666); err != nil {
				t.Fatal(err)
			}
		}, Damaged, 0, "config.yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			c.change(t, runDir(dir))
			before := contents(t, dir)
			s := Summarize(dir)
			if s.State != c.state || c.step >= 0 && s.Step != c.step {
				t.Errorf("%s at step %d, want %s at %d: %v", s.State, s.Step, c.state, c.step, s.Err)
			}
			if (s.Err == nil) != (c.fault == "") || s.Err != nil && !strings.Contains(s.Err.Error(), c.fault) {
				t.Errorf("fault %v, want one about %q", s.Err, c.fault)
			}
			got := []any{s.ValLoss, s.ValStep, s.TrainLoss}
			want := []any{result.ValLoss, result.EvalStep, result.TrainLoss}
			if s.State == Finished && !slices.Equal(got, want) {
				t.Errorf("validation loss, its step and training loss %v, the run ended with %v", got, want)
			}
			if c.fault == "" && s.Parameters != result.Parameters {
				t.Errorf("%d parameters, want %d", s.Parameters, result.Parameters)
			}
			if s.Bytes <= 0 || s.Changed.IsZero() {
				t.Errorf("%d bytes, changed at %v", s.Bytes, s.Changed)
			}
			if contents(t, dir) != before {
				t.Error("the run was changed")
			}
		})
	}
}

// replaceIn puts text in the place of the first occurrence of old.
func replaceIn(t *testing.T, path, old, text string) {
	t.Helper()
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	now := strings.Replace(string(was), old, text, 1)
	if now == string(was) {
		t.Fatalf("%s has no %q", path, old)
	}
	if err := os.WriteFile(path, []byte(now), 0o666); err != nil {
		t.Fatal(err)
	}
}

// A run that a signal stopped is listed as stopped, one that ran out of its minutes as finished.
func TestSummariesTellStoppedFromFinished(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := filepath.Join(t.TempDir(), "run")
	cfg := traintest.Config(traintest.Data(t))
	if _, err := Run(ctx, Options{Config: cfg, Dir: dir, OnProgress: func(p train.Event) {
		if p.Step == 3 {
			cancel()
		}
	}}); err != nil {
		t.Fatal(err)
	}
	if s := Summarize(dir); s.State != Stopped || s.Step != 3 || s.Steps != cfg.Train.Steps {
		t.Errorf("%s at step %d of %d: %v", s.State, s.Step, s.Steps, s.Err)
	}
	dir = filepath.Join(t.TempDir(), "timed")
	cfg = traintest.Config(traintest.Data(t))
	cfg.Train.Minutes = 1e-9
	mustRun(t, Options{Config: cfg, Dir: dir})
	if s := Summarize(dir); s.State != Finished || s.Step >= cfg.Train.Steps {
		t.Errorf("out of time: %s at step %d of %d: %v", s.State, s.Step, s.Steps, s.Err)
	}
	// Every checkpoint may be of an evaluated step: that alone does not mean that the time was up.
	for _, event := range []string{"started", "stopped", "failed", "rewound"} {
		j, err := openJournal(runDir(dir), 1)
		if err != nil {
			t.Fatal(err)
		}
		j.write(event, "")
		j.write("warning", "of a disk")
		j.close()
		if s := Summarize(dir); s.State != Stopped {
			t.Errorf("%s before its time was up: it is %s", event, s.State)
		}
	}
}
