package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anneal/checkpoint"
	"anneal/train"
	"anneal/train/traintest"
)

// faulty runs 24 steps that save every 4, while a directory in the place of a file, .lock or latest, makes checkpoints
// fail from one step to another: the first before they are written, the second after.
func faulty(t *testing.T, file string, failures, from, to int) (r *Result, dir, warned string, err error) {
	t.Helper()
	cfg := rewindConfig(traintest.Data(t))
	cfg.Checkpoint.MaxFailures = failures
	dir = filepath.Join(t.TempDir(), "run")
	var s said
	o := Options{Config: cfg, Dir: dir, Warn: s.warn}
	o.OnProgress = func(p train.Event) {
		path := filepath.Join(filepath.Join(dir, "checkpoints"), file)
		var err error
		switch p.Step {
		case from:
			if from > 8 {
				for text := []byte(nil); !strings.HasPrefix(string(text),
					"step-000000"+fmt.Sprintf("%02d", from/4*4)); time.Sleep(time.Millisecond) {
					// the checkpoint before is whole
					text, _ = os.ReadFile(filepath.Join(filepath.Join(dir, "checkpoints"), "latest"))
				}
			}
			if err = os.Rename(path, path+"-away"); err == nil {
				err = os.MkdirAll(filepath.Join(path, "x"), 0o777)
			}
		case to:
			repair(t, path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err = Run(context.Background(), o)
	return r, dir, s.all(), err
}

func repair(t *testing.T, path string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(path), os.Rename(path+"-away", path)); err != nil {
		t.Fatal(err)
	}
}

// After two failed checkpoints in a row, the run warns, continues to the same weights and saves again.
func TestFailedCheckpointsAreSurvived(t *testing.T) {
	want := mustRun(t, Options{Config: rewindConfig(traintest.Data(t)), Dir: filepath.Join(t.TempDir(), "run")})
	for file, steps := range map[string]int{".lock": 4, "latest": 6} {
		r, dir, warned, err := faulty(t, file, 3, 11, 19)
		if err != nil || r.WeightsHash != want.WeightsHash {
			t.Fatalf("%s: %+v, %v\n%s", file, r, err, warned)
		}
		// of latest, the second may come late enough to succeed
		n := strings.Count(warned, "training continues and saves again at step ")
		if n != 2 && (file != "latest" || n != 1) || !strings.Contains(warned, "cannot save step 12: ") {
			t.Errorf("%s: %d failures were told:\n%s", file, n, warned)
		}
		list, err := checkpoint.List(filepath.Join(dir, "checkpoints"))
		if err != nil || len(list) != steps || list[0].Step != 24 || list[1].Step != 20 {
			t.Errorf("%s: the run has the checkpoints %+v, %v", file, list, err)
		}
	}
}

// As many failures in a row as allowed end the run, and so does the first of all checkpoints; neither promises a
// checkpoint that is not there.
func TestTooManyFailedCheckpointsEndTheRun(t *testing.T) {
	for _, c := range []struct {
		failures, from int
		want           string
	}{
		{2, 11, "cannot save step 16: "},
		{3, 2, "cannot save step 4: "},
		{5, 22, "cannot save step 24: "}, // the last one
	} {
		_, dir, warned, err := faulty(t, ".lock", c.failures, c.from, 1000)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) ||
			strings.Contains(err.Error(), "has its checkpoint") != (c.from > 4) {
			t.Errorf("away from step %d on, at most %d failures: %v\n%s", c.from, c.failures, err, warned)
			continue
		}
		repair(t, filepath.Join(filepath.Join(dir, "checkpoints"), ".lock"))
		resumeTo(t, dir)
	}
}

// A run that saves only when it is asked to survives a checkpoint that fails, too.
func TestACheckpointThatWasAskedForMayFail(t *testing.T) {
	cfg := rewindConfig(traintest.Data(t))
	cfg.Checkpoint.Every = 0
	saves := make(chan struct{}, 1)
	var s said
	o := Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run"), Saves: saves, Warn: s.warn}
	lock := filepath.Join(filepath.Join(o.Dir, "checkpoints"), ".lock")
	o.OnProgress = func(p train.Event) {
		switch p.Step {
		case 2:
			saves <- struct{}{}
		case 6:
			if err := errors.Join(os.Rename(lock, lock+"-away"),
				os.MkdirAll(filepath.Join(lock, "x"), 0o777)); err != nil {
				t.Fatal(err)
			}
			saves <- struct{}{}
		case 8:
			repair(t, lock)
		}
	}
	if r := mustRun(t, o); r.Step != cfg.Train.Steps {
		t.Errorf("the run ended at step %d", r.Step)
	}
	if want := fmt.Sprintf("saves again at step %d;", cfg.Train.Steps); !strings.Contains(s.all(), want) {
		t.Errorf("%q is not in %q", want, s.all())
	}
}

// A run whose checkpoints are gone does not start over, which would remove its metrics, unless it is told to.
func TestARunWhoseCheckpointsAreGoneDoesNotStartOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: rewindConfig(traintest.Data(t)), Dir: dir})
	away := filepath.Join(t.TempDir(), "away")
	if err := os.Rename(filepath.Join(dir, "checkpoints"), away); err != nil {
		t.Fatal(err)
	}
	_, err := Resume(context.Background(), Options{Dir: dir})
	if lines := len(readMetrics(t, dir)); !errors.Is(err, checkpoint.ErrNone) ||
		!strings.Contains(err.Error(), "--to 0") || lines != 24 {
		t.Errorf("%d lines of metrics are left: %v", lines, err)
	}
	if _, err := Rewind(dir, RewindOptions{To: 0}); err != nil {
		t.Fatal(err)
	}
	if r, err := Resume(context.Background(), Options{Dir: dir}); err != nil || r.Step != 24 {
		t.Errorf("%+v, %v", r, err)
	}
}
