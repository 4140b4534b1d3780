package run

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"anneal/train"
	"anneal/train/traintest"
)

// When the leader ends a run because it cannot begin a checkpoint, the other ranks end with it: they do not wait for it
// in the next step.
func TestALeaderThatCannotSaveEndsAllRanks(t *testing.T) {
	cfg, dir := ranksConfig(traintest.Data(t), 2), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Checkpoint.Every, cfg.Checkpoint.MaxFailures = 40, 5, 1
	var s said
	_, err := Run(context.Background(), Options{Config: cfg, Dir: dir, Threads: 2, Warn: s.warn,
		OnProgress: func(e train.Event) {
			if e.Step != 8 {
				return
			}
			lock := filepath.Join(dir, "checkpoints", ".lock")
			if err := os.Rename(lock, lock+"-away"); err != nil {
				t.Error(err)
			}
			if err := os.MkdirAll(filepath.Join(lock, "x"), 0o777); err != nil {
				t.Error(err)
			}
		}})
	if err == nil || !strings.Contains(err.Error(), "cannot save step 10") {
		t.Fatalf("the run ends with %v", err)
	}
	left := func() bool {
		stacks := make([]byte, 1<<20)
		return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "comm/local.(*rank).block")
	}
	for end := time.Now().Add(20 * time.Second); left(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a rank still waits for the leader")
		}
	}
}
