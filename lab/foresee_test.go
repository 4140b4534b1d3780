package lab

import (
	"testing"

	"anneal/model"
	"anneal/plan"
	"anneal/precision"
)

// The formulas of plan against the model's own code, run on a device that computes nothing, for every precision and for
// layers treated in any way. Arenas align tensors, which is worth less than a page each.
func TestPlannedMemoryIsWhatTheModelTakes(t *testing.T) {
	for _, s := range []plan.Shape{
		{Layers: 6, Dim: 384, Heads: 6, KVHeads: 6, HeadDim: 64, FFN: 1024, Context: 256, Vocab: 4096, Tied: true},
		{Layers: 12, Dim: 768, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 2048, Context: 512, Vocab: 16384, Tied: true},
		{Layers: 4, Dim: 512, Heads: 8, KVHeads: 2, HeadDim: 64, FFN: 1408, Context: 512, Vocab: 8192, QKNorm: true},
	} {
		for _, name := range precision.Names() {
			for _, l := range []model.Layout{
				{}, {Whole: s.Layers - 1, Segment: 1}, {Whole: s.Layers - 2, Segment: 2}, {Whole: 3, Segment: 2},
				{Attention: s.Layers}, {Attention: 1}, {Whole: 1, Segment: 1, Attention: 2}, {Whole: s.Layers, Segment: s.Layers},
			} {
				s.Recompute = plan.Recompute(l)
				for _, s.Masked = range []bool{false, true} {
					samePlan(t, s, name, l)
				}
			}
		}
	}
}

func samePlan(t *testing.T, s plan.Shape, name string, l model.Layout) {
	t.Helper()
	policy, err := precision.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	dropout := 0.0
	if s.Masked {
		dropout = 0.1
	}
	got := model.Measure(model.Config{
		Layers: s.Layers, Dim: s.Dim, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim, FFN: s.FFN,
		Context: s.Context, Vocab: s.Vocab, TieEmbeddings: s.Tied, QKNorm: s.QKNorm,
		RopeTheta: 1e4, NormEps: 1e-5, InitStd: 0.02, Recompute: l, Dropout: dropout, StochasticDepth: dropout,
	}, policy, 4, s.Context, true)
	estimate, err := plan.Memory(s, name, 4, plan.Optimizer{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		plan, run int64
	}{
		{"parameters", estimate.Bytes("parameters") + estimate.Bytes("positions"), int64(got.Params)},
		{"gradients", estimate.Bytes("gradients"), int64(got.Grads)},
		{"activations", estimate.Bytes("activations"), int64(got.Keep)},
		{"scratch", estimate.Bytes("scratch"), int64(got.Temp)},
	} {
		if c.run < c.plan || c.run-c.plan > 64<<10 {
			t.Errorf("%+v %s: %s planned %d bytes, the model takes %d", s, name, c.what, c.plan, c.run)
		}
	}
}
