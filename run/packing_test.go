package run

import (
	"context"
	"path/filepath"
	"testing"

	"anneal/train/traintest"
)

// However documents are packed, a run that is stopped in the middle of an epoch resumes bit for bit, on other threads,
// too, while sequences lengthen. Each packing trains on other rows.
func TestPackedRunsResumeBitForBit(t *testing.T) {
	data := traintest.Data(t)
	hashes := map[string]string{}
	for _, packing := range []string{"concat", "best_fit", "pad"} {
		cfg := traintest.Config(data)
		cfg.Data.Packing, cfg.Train.Steps, cfg.Schedule.Warmup = packing, 12, 1
		traintest.Override(cfg, "train.length_warmup=16 over 4 steps")
		want := mustRun(t, Options{Config: cfg.Clone(), Dir: filepath.Join(t.TempDir(), "whole")})
		if other, has := hashes[want.WeightsHash]; has {
			t.Errorf("%s and %s end with the same weights", packing, other)
		}
		hashes[want.WeightsHash] = packing
		dir := filepath.Join(t.TempDir(), "stopped")
		if r, err := Run(&countdown{context.Background(), 7}, Options{Config: cfg.Clone(), Dir: dir}); err != nil ||
			!r.Interrupted {
			t.Fatalf("%s: interrupted %+v, %v", packing, r, err)
		}
		got, err := Resume(context.Background(), Options{Dir: dir, Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		if got.WeightsHash != want.WeightsHash || got.ValLoss != want.ValLoss {
			t.Errorf("%s: weights %.12s, validation %v after an interruption; %.12s, %v without",
				packing, got.WeightsHash, got.ValLoss, want.WeightsHash, want.ValLoss)
		}
	}
}
