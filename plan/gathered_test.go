package plan

import (
	"testing"

	"anneal/comm/absent"
	"anneal/model"
	"anneal/program"
	"anneal/train"
)

// Of many micro-batches a few are followed; the rest is as if all had been.
func TestManyMicroBatchesReceiveAsIfFollowed(t *testing.T) {
	for _, set := range []string{"1f1b", "gpipe", "interleaved:2"} {
		cfg := load(t, "parallel.schedule="+set, "parallel.pipeline=2", "parallel.ranks=4", "parallel.zero=3",
			"model.layers=8", "model.dim=32", "model.heads=2", "model.ffn=64", "model.context=16", "model.vocab=64",
			"train.batch_tokens=512", "train.micro_batch=1")
		schedule, err := program.Parse(cfg.Parallel.Schedule)
		if err != nil {
			t.Fatal(err)
		}
		for rank := range 2 {
			f, err := train.MeasureRank(cfg, machine{}, absent.New(2*rank, 4, true))
			if err != nil {
				t.Fatal(err)
			}
			stage := sizesOf(cfg).At(2*rank, 4).Stage
			m := model.DeclarePart(f.Model, f.Here)
			units := make([]float64, m.Units()+2)
			for u := range units {
				units[u] = float64(1 + u*u)
			}
			for micros := 1; micros < 60; micros++ {
				lists, err := schedule.Fit(2, micros)
				if err != nil {
					t.Fatal(err)
				}
				want := followed(m, lists[stage], stage == 0, stage == 1, units)
				if got, err := gathered(cfg, m, stage, units, micros); err != nil || got != want {
					t.Errorf("%s, stage %d, %d micro-batches: %v, %v, want %v", set, stage, micros, got, err, want)
				}
			}
		}
	}
}
