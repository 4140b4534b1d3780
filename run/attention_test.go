package run

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"anneal/train"
	"anneal/train/traintest"
)

// With each pattern a run learns something else than with full attention, and its bits depend neither on an
// interruption, nor on threads, nor on what backward computes again; shorter sequences at the beginning use the same
// pattern.
func TestEachPatternTrainsBitForBit(t *testing.T) {
	data := traintest.Data(t)
	hashes := map[string]string{}
	for _, pattern := range []string{
		"full", "window:5", "longformer:4:2", "bigbird:1:1:1:4", "strided:4", "fixed:8:2", "longnet:8/1:16/2:32/4",
		"longformer:4:2:dilation=1/2", "longnet:8/1:16/2:32/4:depth",
		"window:5,full", "linear", "linear:gated,full", "delta", "delta:gated,full", "gla",
		"delta:gated,full model.short_conv=4",
	} {
		options := func() Options {
			cfg := traintest.Config(data)
			pattern, more, _ := strings.Cut(pattern, " ")
			if more != "" {
				traintest.Override(cfg, more)
			}
			cfg.Model.Attention, cfg.Train.Steps, cfg.Schedule.Warmup = seen(pattern), 4, 1
			traintest.Override(cfg, "train.length_warmup=16 over 1 steps")
			cfg.Train.EvalEvery, cfg.Train.EvalTokens = 0, 256
			cfg.Resolve()
			return Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run"), Threads: 1}
		}
		want := mustRun(t, options())
		if other, has := hashes[want.WeightsHash]; has {
			t.Errorf("%s trains the weights of %s", pattern, other)
		}
		hashes[want.WeightsHash] = pattern

		stopped := options()
		stopped.Config.Memory.Recompute, stopped.Threads = recomputing("every_layer"), 2
		ctx, cancel := context.WithCancel(context.Background())
		stopped.OnProgress = func(p train.Event) {
			if p.Step == 2 {
				cancel()
			}
		}
		if r, err := Run(ctx, stopped); err != nil || !r.Interrupted {
			t.Fatalf("%s: the run was not interrupted: %v", pattern, err)
		}
		got, err := Resume(context.Background(), Options{Dir: stopped.Dir, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got.WeightsHash != want.WeightsHash || got.ValLoss != want.ValLoss {
			t.Errorf("%s: weights %.12s after an interruption, with recomputation and 2 threads; %.12s without",
				pattern, got.WeightsHash, want.WeightsHash)
		}
	}
}
