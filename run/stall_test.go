package run

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"anneal/train"
)

// BenchmarkStall reports how much longer than others a step of a run takes that follows a save, which each rank begins
// with a copy of what it writes: the first, which makes the memory for it, and a later one. The model has 50 million
// parameters. Saves are far apart, since one waits until the one before is written.
func BenchmarkStall(b *testing.B) {
	data := testData(b)
	for _, ranks := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			var first, later, step []time.Duration
			for b.Loop() {
				cfg := ranksConfig(data, ranks)
				cfg.Model.Layers, cfg.Model.Dim, cfg.Model.Heads, cfg.Model.HeadDim, cfg.Model.FFN = 7,
					768, 12, 64, 2048
				cfg.Model.KVHeads, cfg.Parallel.Zero = 12, 1
				cfg.Train.Steps, cfg.Checkpoint.Every, cfg.Train.EvalEvery = 43, 20, 0
				var at []time.Time
				o := Options{Config: cfg, Dir: filepath.Join(b.TempDir(), "run"), Threads: max(ranks, 2)}
				o.OnProgress = func(train.Event) { at = append(at, time.Now()) }
				if _, err := Run(context.Background(), o); err != nil {
					b.Fatal(err)
				}
				took := func(i int) time.Duration { return at[i].Sub(at[i-1]) } // of step i+1
				plain := slices.Min([]time.Duration{took(17), took(18), took(19), took(37), took(38), took(39)})
				step = append(step, plain)
				first = append(first, took(20)-plain)
				later = append(later, took(40)-plain)
			}
			ms := func(list []time.Duration) float64 {
				return slices.MinFunc(list, cmp.Compare).Seconds() * 1e3
			}
			b.ReportMetric(ms(step), "step-ms")
			b.ReportMetric(ms(first), "first-ms")
			b.ReportMetric(ms(later), "stall-ms")
		})
	}
}
