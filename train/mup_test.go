package train

import (
	"math"
	"testing"

	"anneal/nn"
)

// MUP-2: with the base model's own sizes muP is the standard parametrisation, bit for bit, weights and optimizer
// state.
func TestMuPOfTheBaseModelChangesNoBit(t *testing.T) {
	for _, name := range optimizers(t) {
		var own []string
		switch name {
		case "adafactor", "schedulefree", "soap", "sophia":
			continue // refused
		case "muon":
			own = []string{"optimizer.muon_scale=spectral_mup"}
		}
		for _, more := range [][]string{
			nil, {"model.qk_norm=true", "model.tie_embeddings=false"}, {"model.init=small", "model.zero_init=residual"},
		} {
			own := append(own, more...)
			plain, src := optimizerTrainer(t, name, own...)
			mup, _ := optimizerTrainer(t, name,
				append([]string{"model.mup=true", "model.mup_base_dim=64", "model.mup_base_layers=2"}, own...)...)
			steps(t, plain, src, 5)
			steps(t, mup, src, 5)
			if got, want := hashes(mup), hashes(plain); got != want {
				t.Errorf("%s %v: after 5 steps hashes are %v with muP, %v without", name, more, got, want)
			}
		}
	}
}

// CompleteP scales ε with the depth: where ε outweighs the second moment, a step is as many times shorter as ε is
// larger.
func TestEpsilonScalesWithTheDepth(t *testing.T) {
	first := func(scaled bool) (params []*nn.Param, moved []float64) {
		tr, src := optimizerTrainer(t, "adamw", "model.mup=true", "model.mup_base_dim=64", "model.mup_base_layers=1",
			"optimizer.eps=0.9", "optimizer.lr=1", "optimizer.weight_decay=0", "schedule.warmup=1", "precision=fp32",
			"train.clip=0")
		params = tr.model.Params()
		var before []float64
		for _, p := range params {
			before = append(before, p.Value.Float64(0))
			if !scaled {
				p.EpsScale = 0
			}
		}
		steps(t, tr, src, 1)
		for i, p := range params {
			moved = append(moved, p.Value.Float64(0)-before[i])
		}
		return params, moved
	}
	params, scaled := first(true)
	_, plain := first(false)
	seen := 0
	for i, p := range params {
		if p.EpsScale == 0 || p.EpsScale == 1 || math.Abs(plain[i]) < 1e-6 {
			continue
		}
		seen++
		if ratio := plain[i] / scaled[i]; math.Abs(ratio/p.EpsScale-1) > 0.02 {
			t.Errorf("%s: ε × %v makes the step %v times shorter", p.Name, p.EpsScale, ratio)
		}
	}
	if seen == 0 {
		t.Error("no parameter has an ε of its own")
	}
}
