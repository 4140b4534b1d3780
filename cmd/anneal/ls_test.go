package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anneal/run"
)

// ls finds the runs below a directory and names damaged ones, as text and as JSON.
func TestLsListsRuns(t *testing.T) {
	w := newWorkshop(t)
	if got := w.object(exitOK, "ls", w.dir)["runs"].([]any); len(got) != 0 {
		t.Errorf("a directory without runs has %v", got)
	}
	w.object(exitOK, "train", w.path("run.yaml"), "--out", w.path("runs/b"))
	w.object(exitOK, "train", w.path("run.yaml"), "--out", w.path("runs/a"))
	if err := os.WriteFile(w.path("runs/b/config.yaml"), []byte("model: ["), 0o644); err != nil {
		t.Fatal(err)
	}
	runs := w.object(exitOK, "ls", w.dir)["runs"].([]any)
	if len(runs) != 2 {
		t.Fatalf("%d runs, want 2: %v", len(runs), runs)
	}
	a, b := runs[0].(map[string]any), runs[1].(map[string]any)
	w.keys(a, "run", "train_loss", "val_loss", "val_bits_per_byte", "val_step", "parameters", "bytes", "changed",
		"age_seconds")
	if a["run"] != w.path("runs/a") || a["state"] != "finished" || a["step"] != 20.0 || a["steps"] != 20.0 {
		t.Errorf("the first run is %v", a)
	}
	if b["state"] != "damaged" || !strings.Contains(b["error"].(string), "config.yaml") {
		t.Errorf("the second run is %v", b)
	}
	code, out, errs := anneal("ls", w.dir)
	if code != exitOK || !strings.Contains(out, "20/20") || !strings.Contains(errs, "config.yaml") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	w.object(exitUsage, "ls", filepath.Join(w.dir, "missing"))
}

func TestLsWritesATable(t *testing.T) {
	now := time.Unix(1e9, 0)
	nan := math.NaN()
	var b bytes.Buffer
	err := writeRuns(&b, []run.Summary{
		{Dir: "runs/a", State: run.Finished, Step: 2000, Steps: 2000, ValLoss: 3.25, ValStep: 2000,
			Parameters: 124_439_808, Bytes: 1_500_000_000, Changed: now.Add(-49 * time.Hour)},
		{Dir: "b", State: run.Running, Step: 7, Steps: 1000, TrainLoss: 8.5, ValLoss: nan, Parameters: 1_400_000,
			Bytes: 5e6, Changed: now.Add(-3 * time.Second)},
		{Dir: "c", State: run.Imported, TrainLoss: nan, ValLoss: nan, Changed: now.Add(-61 * time.Minute)},
	}, now)
	want := strings.TrimLeft(`
RUN     STATE     STEPS        LOSS (NATS/TOKEN)   PARAMETERS  DISK    AGE
runs/a  finished  2,000/2,000  3.2500 at 2,000     124.4M      1.5 GB  2d
b       running   7/1,000      8.5000 in training  1.4M        5.0 MB  3s
c       imported  -            -                   -           0 B     1h
`, "\n")
	if got := b.String(); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}
