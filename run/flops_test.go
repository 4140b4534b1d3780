package run

import (
	"context"
	"math"
	"testing"

	"anneal/dataset"
	"anneal/train/traintest"
)

// What a step counts as its work for the share of peak is what its attention looks at: with document masks the pairs
// inside documents, counted here one by one, without them the causal pairs.
func TestStepCountsThePairsItComputes(t *testing.T) {
	data := traintest.Data(t)
	flops := map[bool]float64{}
	for _, masked := range []bool{true, false} {
		cfg := smallConfig(t, data, "model.context=256", "train.batch_tokens=1024", "train.micro_batch=2")
		cfg.Data.DocumentMask = masked
		trial, err := NewTrial(cfg, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer trial.Close()
		stats, err := trial.Step(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		tr, pairs := trial.trainer, 0
		for first := uint64(0); first < 4; first += 2 {
			var b dataset.Batch
			if err := trial.src.Batch(&b, first, 2); err != nil {
				t.Fatal(err)
			}
			for i, from := range b.DocStart {
				if !masked {
					from = 0
				}
				for key := 0; key <= i%256; key++ {
					if key >= int(from) {
						pairs++
					}
				}
			}
		}
		c := tr.Model().Config
		products := tr.Model().FLOPsPerToken(0) * 1024 // all but attention
		want := products + 3*float64(c.Layers*c.Heads*pairs*4*c.HeadDim)
		if math.Abs(stats.FLOPs-want) > 1e-9*want {
			t.Errorf("document masks %v: %g FLOPs, want %g of %d pairs", masked, stats.FLOPs, want, pairs)
		}
		flops[masked] = stats.FLOPs - products
	}
	if !(flops[true] < 0.75*flops[false]) {
		t.Errorf("attention with document masks counts %g FLOPs, without %g: the test's documents are too long to tell",
			flops[true], flops[false])
	}
}
