package use

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anneal/run"
	"anneal/train/traintest"
)

// Weights alone are told from runs, and runs from directories that hold something else.
func TestRunsAreFoundBelowADirectory(t *testing.T) {
	root := t.TempDir()
	source, hf := filepath.Join(root, "a", "run"), filepath.Join(root, "hf")
	cfg := with(t, traintest.Data(t), "checkpoint.every=5")
	mustRun(t, run.Options{Config: cfg, Dir: source})
	generateText(t, source, hf)
	if _, err := run.ImportHF(hf, filepath.Join(root, "imported"), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := run.AverageCheckpoints(source, 2, filepath.Join(root, "averaged"), false); err != nil {
		t.Fatal(err)
	}
	r, err := Open(source, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.WriteAs(filepath.Join(root, "compressed"), "anneal compress"); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{".hidden", "web"} { // a hidden run, and a config.yaml of another program
		if err := os.MkdirAll(filepath.Join(root, other), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, other, "config.yaml"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"config.yaml", "tokenizer.json"} { // of runs to be
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, ".hidden", "checkpoints"), 0o777); err != nil {
		t.Fatal(err)
	}
	found, err := run.FindRuns(root, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		source, filepath.Join(root, "averaged"), filepath.Join(root, "compressed"),
		filepath.Join(root, "imported"),
	}
	if !slices.Equal(found, want) {
		t.Fatalf("found %v, want %v", found, want)
	}
	for i, state := range []run.RunState{run.Finished, run.Derived, run.Derived, run.Imported} {
		s := run.Summarize(found[i])
		if s.State != state || s.Err != nil || state == run.Imported && !math.IsNaN(s.TrainLoss) {
			t.Errorf("%s is %s, want %s; training loss %v; %v", s.Dir, s.State, state, s.TrainLoss, s.Err)
		}
	}
	if again, err := run.FindRuns(source, func(error) {}); err != nil || !slices.Equal(again, []string{source}) {
		t.Errorf("in a run: %v, %v", again, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(root, "a"), link); err == nil {
		again, err := run.FindRuns(link, func(error) {})
		if err != nil || !slices.Equal(again, []string{filepath.Join(link, "run")}) {
			t.Errorf("below a link: %v, %v", again, err)
		}
	}
	if _, err := run.FindRuns(filepath.Join(root, "missing"), func(error) {}); err == nil {
		t.Error("a missing directory was searched")
	}
}
