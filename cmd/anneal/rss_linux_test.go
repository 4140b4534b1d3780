package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// A run holds what its dry run says, within 3 %, to its end: also where it saves, and hashes what it has saved.
func TestARunHoldsWhatItsDryRunSays(t *testing.T) {
	if testing.Short() {
		t.Skip("trains 50 million parameters")
	}
	w := newWorkshop(t)
	args := []string{
		"train", w.path("run.yaml"), "model.dim=768", "model.heads=12", "model.layers=7", "model.context=32",
		"train.micro_batch=1", "train.batch_tokens=64", "train.steps=3", "checkpoint.every=1", "train.eval_tokens=64",
		"parallel.ranks=2", "threads=2", "parallel.zero=2", "--json",
	}
	measured := func(name string, more ...string) float64 {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, append(args, more...)...)
		cmd.Env = append(os.Environ(), "ANNEAL_TEST_COMMAND=1")
		out, err := cmd.Output()
		v := map[string]any{}
		if err == nil {
			err = json.Unmarshal(out, &v)
		}
		n, _ := v[name].(float64)
		if err != nil || n == 0 {
			t.Fatalf("%v has no %s: %v\n%.500s", more, name, err, out)
		}
		return n
	}
	planned := measured("memory_bytes", "--dry-run")
	peak := measured("peak_rss_bytes", "--out", w.path("run"))
	t.Logf("planned %.1f MiB, peak %.1f MiB: %+.1f %%", planned/(1<<20), peak/(1<<20), 100*(peak/planned-1))
	if peak > 1.03*planned {
		t.Errorf("the run held %.0f bytes, planned are %.0f", peak, planned)
	}
}
