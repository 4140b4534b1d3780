package use

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"anneal/run"
	"anneal/train/traintest"
)

// What was imported, or averaged of checkpoints, cannot be trained on: resume, branch and rewind say so, also where
// the optimizer has no state whose lack would show, and leave the directory as it is.
func TestWeightsAloneAreNotTrainedOn(t *testing.T) {
	data := traintest.Data(t)
	for _, optimizer := range []string{"sgd", "adamw"} {
		source, hf := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "hf")
		imported, averaged := filepath.Join(t.TempDir(), "imported"), filepath.Join(t.TempDir(), "averaged")
		mustRun(t, run.Options{Config: with(t, data, "optimizer.name="+optimizer, "checkpoint.every=5"), Dir: source})
		generateText(t, source, hf)
		if _, err := run.ImportHF(hf, imported, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := run.AverageCheckpoints(source, 2, averaged, false); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{imported, averaged} {
			before := contents(t, dir)
			_, resume := run.Resume(context.Background(), run.Options{Dir: dir})
			_, branch := run.BranchConfig(dir, nil)
			_, rewind := run.Rewind(dir, run.RewindOptions{To: 0})
			for what, err := range map[string]error{"resume": resume, "branch": branch, "rewind": rewind} {
				if err == nil || !strings.Contains(err.Error(), "holds only weights") {
					t.Errorf("%s, %s of %s: %v", optimizer, what, filepath.Base(dir), err)
				}
			}
			if contents(t, dir) != before {
				t.Errorf("%s: %s was changed", optimizer, filepath.Base(dir))
			}
		}
	}
}
