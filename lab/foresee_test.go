package lab

import (
	"testing"

	"anneal/model"
	"anneal/plan"
	"anneal/precision"
	"anneal/train/config"
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

// The scales of precision fp8 and their histories are what the model lays out beside its weights.
func TestPlannedScalesAreTheModels(t *testing.T) {
	c := model.Config{
		Layers: 3, Dim: 64, Heads: 2, KVHeads: 2, HeadDim: 32, FFN: 192, Context: 32, Vocab: 320, TieEmbeddings: true,
		RopeTheta: 1e4, NormEps: 1e-5, InitStd: 0.02,
	}
	params := func(name string, fp8 *precision.FP8) int64 {
		p, err := precision.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		p.FP8 = fp8
		return int64(model.Measure(c, p, 1, 32, true).Params)
	}
	cfg := config.Default()
	cfg.Precision, cfg.FP8.Scaling, cfg.FP8.History, cfg.Model.Layers = "fp8", "delayed", 255, c.Layers
	var f Foresight
	f.planScales(cfg)
	more := params("fp8", &precision.FP8{Delayed: true, History: 255}) - params("fp8", &precision.FP8{})
	if f.Bytes != more || f.Memory.Bytes("fp8 scales") != more {
		t.Errorf("planned %d bytes of scales, the model has %d", f.Bytes, more)
	}
	cfg.FP8.Scaling = "current"
	f.planScales(cfg)
	if f.Bytes != more {
		t.Errorf("current scaling keeps %d bytes", f.Bytes-more)
	}
}
