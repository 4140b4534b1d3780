package run

import (
	"context"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// A run with FP64 masters that is stopped and resumed, or shared by ranks, ends with the bits of one that is neither.
func TestRunsWithFP64MastersKeepTheirBits(t *testing.T) {
	data := traintest.Data(t)
	make := func(ranks, zero int) *config.Config {
		cfg := ranksConfig(data, ranks)
		cfg.Optimizer.Masters, cfg.Parallel.Zero = "f64", zero
		return cfg
	}
	one := mustRun(t, Options{Config: make(1, 0), Dir: filepath.Join(t.TempDir(), "run")})
	want := [2]string{one.WeightsHash, one.OptimizerHash}
	plain := mustRun(t, Options{Config: ranksConfig(data, 1), Dir: filepath.Join(t.TempDir(), "run")})
	if plain.WeightsHash == one.WeightsHash {
		t.Error("masters change nothing")
	}
	for _, x := range [][2]int{{2, 0}, {2, 1}, {3, 3}} {
		wantHash(t, mustRun(t, Options{
			Config: make(x[0], x[1]), Dir: filepath.Join(t.TempDir(), "run"), Threads: 4,
		}), want)
	}
	dir := filepath.Join(t.TempDir(), "run")
	stopped(t, make(1, 0), dir, 4)
	r, err := Resume(context.Background(), Options{Dir: dir, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	wantHash(t, r, want)
}
