package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/tokenizer"
	"anneal/train/traintest"
)

// A run is resumed from any working directory, after it was moved, and after it was moved together with its data.
func TestARunThatWasMovedGoesOn(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "data"), os.DirFS(traintest.Data(t))); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(root, "runs", "first")
	t.Chdir(root)
	cfg := smallConfig(t, filepath.Join(root, "data"), "train.steps=2", "data.path=data")
	mustRun(t, Options{Config: cfg, Dir: filepath.Join("runs", "first")})
	steps := 2
	resume := func(dir string) error {
		steps++
		cfg, err := config.Load(filepath.Join(dir, "config.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
		if err == nil {
			longer := strings.Replace(string(text), "steps: "+strconv.Itoa(cfg.Train.Steps),
				"steps: "+strconv.Itoa(steps), 1)
			err = os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(longer), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := Resume(context.Background(), Options{Dir: dir})
		if err == nil && r.Step != steps {
			t.Errorf("%s stopped at step %d, want %d", dir, r.Step, steps)
		}
		return err
	}
	t.Chdir(t.TempDir())
	if err := resume(first); err != nil {
		t.Errorf("in another working directory: %v", err)
	}
	alone := filepath.Join(t.TempDir(), "alone")
	if err := os.Rename(first, alone); err != nil {
		t.Fatal(err)
	}
	if err := resume(alone); err != nil {
		t.Errorf("moved alone: %v", err)
	}
	if err := os.Rename(alone, first); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(root, moved); err != nil {
		t.Fatal(err)
	}
	if err := resume(filepath.Join(moved, "runs", "first")); err != nil {
		t.Errorf("moved together with the data: %v", err)
	}
	first = filepath.Join(moved, "runs", "first")
	where := "set data.path in " + filepath.Join(first, "config.yaml")
	replaceData := func(with string) {
		if err := os.RemoveAll(filepath.Join(moved, "data")); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(moved, "data"), os.DirFS(with)); err != nil {
			t.Fatal(err)
		}
	}
	replaceData(traintest.DataWith(t, 0.3, tokenizer.TrainOptions{VocabSize: 320}))
	rebuilt := resume(first)
	_, verified := Verify(first)
	for what, err := range map[string]error{"resume": rebuilt, "verify": verified} {
		if !errors.Is(err, dataset.ErrOther) || !strings.Contains(err.Error(), where) {
			t.Errorf("%s with data that was built again: %v", what, err)
		}
	}
	if err := os.RemoveAll(filepath.Join(moved, "data", "train")); err != nil {
		t.Fatal(err)
	}
	if v, err := Verify(first); err == nil {
		t.Errorf("a lost shard is no damage: %+v", v)
	}
	replaceData(t.TempDir())
	if err := resume(first); !errors.Is(err, dataset.ErrNone) || !strings.Contains(err.Error(), where) ||
		!strings.Contains(err.Error(), filepath.Join(root, "data")) {
		t.Errorf("without its data: %v", err)
	}
	if v, err := Verify(first); err != nil || !slices.ContainsFunc(v.Remarks, func(remark string) bool {
		return strings.HasPrefix(remark, "the data is not checked: no data set in ")
	}) {
		t.Errorf("verification without the data says %+v: %v", v, err)
	}
}

// A rewind of a run that was moved with its data leaves it one that can be moved with its data again.
func TestARewoundRunCanBeMovedAgain(t *testing.T) {
	at := filepath.Join(t.TempDir(), "first")
	if err := os.CopyFS(filepath.Join(at, "data"), os.DirFS(traintest.Data(t))); err != nil {
		t.Fatal(err)
	}
	mustRun(t, Options{
		Config: smallConfig(t, filepath.Join(at, "data"), "train.steps=4"), Dir: filepath.Join(at, "run"),
	})
	move := func(name string) {
		to := filepath.Join(t.TempDir(), name)
		if err := os.Rename(at, to); err != nil {
			t.Fatal(err)
		}
		at = to
	}
	move("second")
	if _, err := Rewind(filepath.Join(at, "run"), RewindOptions{To: 0, SkipBatches: 1}); err != nil {
		t.Fatal(err)
	}
	move("third")
	if r, err := Resume(context.Background(), Options{Dir: filepath.Join(at, "run")}); err != nil || r.Step != 4 {
		t.Errorf("%+v, %v", r, err)
	}
}
