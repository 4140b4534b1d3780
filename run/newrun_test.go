package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/train/traintest"
)

// A directory that holds something else is no place for a run, and stays as it is; one with logs is.
func TestARunNeedsADirectoryOfItsOwn(t *testing.T) {
	data := traintest.Data(t)
	cfg := traintest.Config(data)
	cfg.Train.Steps, cfg.Schedule.Warmup = 1, 1
	source := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: cfg, Dir: source})
	longer, err := BranchConfig(source, []string{"train.steps=2"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dir string
		is        error
		says      string
	}{
		{"data", data, ErrOccupied, "a data set (dataset.json"},
		{"a tokenizer", dirWith(t, "tokenizer.json"), ErrOccupied, "holds tokenizer.json"},
		{"notes", dirWith(t, "notes.txt", "train.log"), ErrOccupied, "notes.txt"},
		{"a run without its configuration", dirWith(t, "tokenizer.json", "checkpoints"), ErrOccupied, "tokenizer.json"},
		{"a file", file, syscall.ENOTDIR, file},
		{"below a file", filepath.Join(file, "run"), syscall.ENOTDIR, file},
		{"logs", dirWith(t, "train.log", ".gitignore"), nil, ""},
	} {
		before := tree(t, c.dir)
		for what, start := range map[string]func() error{
			"train": func() error { _, err := Run(context.Background(), Options{Config: cfg, Dir: c.dir}); return err },
			"branch": func() error {
				_, err := Branch(context.Background(), Options{Config: longer, Dir: c.dir}, source, 1)
				return err
			},
			"average": func() error { _, err := AverageCheckpoints(source, 2, c.dir, false); return err },
			"import":  func() error { _, err := ImportHF(source, c.dir, ""); return err },
		} {
			err := start()
			if c.is == nil && errors.Is(err, ErrOccupied) {
				t.Errorf("%s into %s: %v", what, c.name, err)
			}
			if c.is == nil {
				if err := os.RemoveAll(c.dir); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "--out") {
				t.Errorf("%s into %s: %v", what, c.name, err)
			}
			if after := tree(t, c.dir); after != before {
				t.Errorf("%s into %s left %s, there was %s", what, c.name, after, before)
			}
		}
	}
}

// A start that was killed before the configuration was whole is made again, without the checkpoints that it left, and
// is no branch even if the killed one was to be.
func TestAKilledStartIsMadeAgain(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	cfg.Train.Steps, cfg.Schedule.Warmup = 2, 1
	dir := filepath.Join(t.TempDir(), "run")
	want := mustRun(t, Options{Config: cfg, Dir: dir})
	if err := errors.Join(os.Rename(filepath.Join(dir, "config.yaml"), runDir(dir).unfinished()),
		os.Remove(filepath.Join(dir, "metrics.jsonl")), os.Remove(runDir(dir).journal()),
		os.Remove(runDir(dir).timing()), os.WriteFile(runDir(dir).branch(), []byte(`{"step":2}`), 0o666)); err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := Run(stopped, Options{Config: cfg, Dir: dir}); err != nil || r.Step != 0 {
		t.Fatalf("started again: %+v, %v", r, err)
	}
	if b, err := runDir(dir).branched(); err != nil || b.Step != 0 {
		t.Errorf("the run is a branch: %+v, %v", b, err)
	}
	if left, err := checkpoint.List(filepath.Join(dir, "checkpoints")); err != nil || len(left) != 1 ||
		left[0].Step != 0 {
		t.Errorf("checkpoints of a run at step 0: %+v, %v", left, err)
	}
	if r, err := Resume(context.Background(), Options{Dir: dir}); err != nil || r.Step != 2 ||
		r.WeightsHash != want.WeightsHash {
		t.Errorf("resumed: %+v, %v; want the weights %s", r, err, want.WeightsHash)
	}
}

// dirWith makes a directory with empty files of these names.
func dirWith(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tree lists what lies below a path, with sizes.
func tree(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		info, _ := d.Info()
		b.WriteString(path + " " + info.ModTime().String() + "\n")
		return nil
	})
	return b.String()
}

// Where the files of a new run cannot all be written, the same command makes it later.
func TestAStartThatFailsCanBeMadeAgain(t *testing.T) {
	cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Schedule.Warmup = 1, 1
	o := Options{Config: cfg, Dir: dir}
	s, err := newSession(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	d := runDir(dir)
	files := newRunFiles(d, cfg, s.corpus.TokenizerJSON, s.corpus.Tokenizer)
	s.close()
	if err := errors.Join(d.begin(), os.MkdirAll(filepath.Join(d.config(), "x"), 0o777)); err != nil {
		t.Fatal(err)
	}
	if err := d.finish(files); err == nil {
		t.Fatal("a directory was replaced")
	}
	if err := os.RemoveAll(d.config()); err != nil {
		t.Fatal(err)
	}
	mustRun(t, o)
}

func TestARunSaysWhatIsMissing(t *testing.T) {
	ctx, cfg, dir := t.Context(), config.Default(), filepath.Join(t.TempDir(), "run")
	_, noConfig := Run(ctx, Options{Dir: dir})
	_, noBranch := Branch(ctx, Options{Dir: dir}, dir, 1)
	_, noTrial := NewTrial(nil, nil, nil)
	_, noDir := Run(ctx, Options{Config: cfg})
	_, noResume := Resume(ctx, Options{})
	_, noData := Run(ctx, Options{Config: cfg, Dir: dir})
	for _, c := range []struct {
		err  error
		want string
	}{
		{noConfig, "no configuration"}, {noBranch, "no configuration"}, {noTrial, "no configuration"},
		{noDir, "Options.Dir"}, {noResume, "Options.Dir"}, {noData, "data.path is not set"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
}
