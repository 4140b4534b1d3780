package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"anneal/train"
	"anneal/train/traintest"
)

// Of D ranks each copies and writes about a D-th of a checkpoint, at every stage of ZeRO. What a rank copies is what it
// writes.
func TestEachRankCopiesItsShare(t *testing.T) {
	data := traintest.Data(t)
	for zero, n := range []int{4, 2, 3, 4} {
		cfg := ranksConfig(data, n)
		cfg.Model.Dim, cfg.Model.FFN, cfg.Model.Layers, cfg.Parallel.Zero = 128, 512, 3, zero
		cfg.Train.Steps, cfg.Train.EvalEvery = 1, 0
		dir := filepath.Join(t.TempDir(), "run")
		mustRun(t, Options{Config: cfg, Dir: dir, Threads: n})
		sizes, all := make([]int64, n), int64(0)
		for rank := range sizes {
			files, err := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*1", fmt.Sprintf("*.r%05d.*", rank)))
			if err != nil || len(files) != 2 {
				t.Fatalf("rank %d of %d has the files %q, %v", rank, n, files, err)
			}
			for _, file := range files {
				info, err := os.Stat(file)
				if err != nil {
					t.Fatal(err)
				}
				sizes[rank] += info.Size()
				all += info.Size()
			}
		}
		if most := slices.Max(sizes); most > all/int64(n)*3/2 {
			t.Errorf("at stage %d, %d ranks write %d bytes: one of them copies more than its share", zero, n, sizes)
		}
	}
}

// A run says what its saves cost: the line of the step after one has save_seconds, the others do not.
func TestMetricsSayHowLongASaveHoldsUp(t *testing.T) {
	for _, n := range []int{1, 2} {
		cfg := ranksConfig(traintest.Data(t), n)
		cfg.Train.Steps, cfg.Checkpoint.Every = 12, 5
		dir := filepath.Join(t.TempDir(), "run")
		mustRun(t, Options{Config: cfg, Dir: dir, Threads: n})
		for i, line := range readMetrics(t, dir) {
			seconds, has := line["save_seconds"].(float64)
			if step := i + 1; has != (step == 6 || step == 11) || seconds < 0 || seconds > 10 {
				t.Errorf("%d ranks: step %d has save_seconds %v", n, step, line["save_seconds"])
			}
		}
	}
}

// BenchmarkStall measures what saving costs training, on a model of 50 million parameters whose weights and state of
// AdamW, 600 MB, the ranks share (ZeRO 1):
//
//	stop-ms   how long training stands still for a later save (save_seconds of rank 0)
//	first-ms  the same of the first save
//	lost-ms   how much longer the steps take, without that, while the checkpoint is copied, hashed and written beside
//	          them. That is work for about 0.7 s of one core. It costs nothing where a core is free; where training
//	          uses all cores it is done in gaps that training leaves, and the rest is lost
//	step-ms   a step that no save disturbs
//
// Stops of D ranks compare with that of one rank with as many threads as each of them, if each has cores of its own.
func BenchmarkStall(b *testing.B) {
	const every, saves, quiet = 16, 4, 4 // steps between saves, saves, steps before each that no save disturbs
	data := traintest.Data(b)
	for _, ranks := range []struct{ n, threads int }{{1, 1}, {1, 2}, {2, 1}, {4, 1}} {
		b.Run(fmt.Sprintf("ranks=%d/threads=%d", ranks.n, ranks.threads), func(b *testing.B) {
			var stops, lost []float64 // ms
			step := 0.0
			for b.Loop() {
				cfg := ranksConfig(data, ranks.n)
				cfg.Model.Layers, cfg.Model.Dim, cfg.Model.Heads, cfg.Model.HeadDim, cfg.Model.FFN = 7,
					768, 12, 64, 2048
				cfg.Model.KVHeads, cfg.Parallel.Zero = 12, 1
				cfg.Train.Steps, cfg.Checkpoint.Every, cfg.Train.EvalEvery = every*(saves+1)-1, every, 0
				var at []time.Time
				var stood []float64
				o := Options{Config: cfg, Dir: filepath.Join(b.TempDir(), "run"), Threads: ranks.n * ranks.threads}
				o.OnProgress = func(e train.Event) {
					at = append(at, time.Now())
					stood = append(stood, max(e.SaveSeconds, 0)*1e3)
				}
				if _, err := Run(context.Background(), o); err != nil {
					b.Fatal(err)
				}
				took := func(i int) float64 { return at[i].Sub(at[i-1]).Seconds() * 1e3 } // step i+1
				stops, lost = nil, nil
				for s := every; s < every*(saves+1)-1; s += every {
					var plain []float64
					for i := s + every - quiet; i < s+every-1; i++ {
						plain = append(plain, took(i))
					}
					slices.Sort(plain)
					step = plain[len(plain)/2]
					more := -stood[s]
					for i := s; i < s+every-quiet; i++ {
						more += took(i) - step
					}
					stops, lost = append(stops, stood[s]), append(lost, more)
				}
			}
			b.Logf("stops %.1f ms, lost %.0f ms", stops, lost)
			b.ReportMetric(step, "step-ms")
			b.ReportMetric(stops[0], "first-ms")
			slices.Sort(stops[1:])
			slices.Sort(lost[1:])
			b.ReportMetric(stops[1+(saves-1)/2], "stop-ms")
			b.ReportMetric(lost[1+(saves-1)/2], "lost-ms")
		})
	}
}
