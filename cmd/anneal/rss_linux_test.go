package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// The peak memory of a run is within 3 % of its dry run, including while it saves and hashes checkpoints.
func TestARunHoldsWhatItsDryRunSays(t *testing.T) {
	if testing.Short() {
		t.Skip("trains 50 million parameters")
	}
	w := newWorkshop(t)
	short := []string{
		"train", w.path("run.yaml"), "model.context=32", "train.micro_batch=1", "train.batch_tokens=64",
		"train.steps=3", "checkpoint.every=1", "train.eval_tokens=64", "threads=2", "--json",
	}
	for name, shape := range map[string][]string{
		"ranks": {"model.dim=768", "model.heads=12", "model.layers=7", "parallel.ranks=2", "parallel.zero=2"},
		"alone": {"model.dim=768", "model.heads=12", "model.layers=7"},
		"tiny":  {"model.dim=384", "model.heads=6", "model.layers=6", "model.context=256", "train.batch_tokens=512"},
	} {
		planned, peak := plannedAndPeak(t, append(slices.Clone(short), shape...), w.path(name))
		t.Logf("%s: planned %.1f MiB, peak %.1f MiB: %+.1f %%", name, planned/(1<<20), peak/(1<<20),
			100*(peak/planned-1))
		if math.Abs(peak/planned-1) > 0.03 {
			t.Errorf("%s: the run held %.0f bytes, planned are %.0f", name, peak, planned)
		}
	}
}

// plannedAndPeak returns the planned bytes of a command's dry run, and the peak bytes of its process.
func plannedAndPeak(t *testing.T, args []string, dir string) (planned, peak float64) {
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
	return measured("memory_bytes", "--dry-run"), measured("peak_rss_bytes", "--out", dir)
}
