package train

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// What was imported, or averaged of checkpoints, cannot be trained on: resume, branch and rewind say so, also where
// the optimizer has no state whose lack would show, and leave the directory as it is.
func TestWeightsAloneAreNotTrainedOn(t *testing.T) {
	data := testData(t)
	for _, optimizer := range []string{"sgd", "adamw"} {
		run, hf := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "hf")
		imported, averaged := filepath.Join(t.TempDir(), "imported"), filepath.Join(t.TempDir(), "averaged")
		mustRun(t, Options{Config: with(t, data, "optimizer.name="+optimizer, "checkpoint.every=5"), Dir: run})
		generateText(t, run, hf)
		if _, err := ImportHF(hf, imported, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := AverageCheckpoints(run, 2, averaged); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{imported, averaged} {
			before := contents(t, dir)
			_, resume := Resume(context.Background(), Options{Dir: dir})
			_, branch := BranchConfig(dir, nil)
			_, rewind := Rewind(dir, RewindOptions{To: 0})
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
