package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/train"
	"anneal/train/traintest"
)

// A run whose directory is taken away, as by a file system that is unmounted, says so, ends with an error instead of a
// panic, and continues with the same bits once it is back.
func TestARunWhoseDirectoryVanishes(t *testing.T) {
	data, root := traintest.Data(t), t.TempDir()
	set := []string{"train.steps=12", "checkpoint.every=2", "checkpoint.max_failures=2", "train.eval_every=0"}
	whole := mustRun(t, Options{Config: smallConfig(t, data, set...), Dir: filepath.Join(root, "whole"), Threads: 1})
	dir, away := filepath.Join(root, "run"), filepath.Join(root, "away")
	var said []string
	_, err := Run(t.Context(), Options{
		Config: smallConfig(t, data, set...), Dir: dir, Threads: 1,
		Warn: func(text string) { said = append(said, text) },
		OnProgress: func(e train.Event) {
			if e.Step == 5 {
				if err := os.Rename(dir, away); err != nil {
					t.Error(err)
				}
			}
		},
	})
	if err == nil || !strings.Contains(err.Error(), "cannot save step") {
		t.Fatalf("the run ends with %v; it said %q", err, said)
	}
	if err := os.RemoveAll(dir); err != nil { // what it may have left of an attempt
		t.Fatal(err)
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	r, err := Resume(t.Context(), Options{Dir: dir, Threads: 1})
	if err != nil || r.WeightsHash != whole.WeightsHash || r.OptimizerHash != whole.OptimizerHash {
		t.Errorf("resumed: %+v, %v", r, err)
	}
}
