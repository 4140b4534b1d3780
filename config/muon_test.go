package config

import (
	"strings"
	"testing"
)

// What the rate of Muon means decides where it starts, and what AdamW gets beside it.
func TestMuonStartsByItsScale(t *testing.T) {
	for _, c := range []struct {
		set               []string
		lr, adamw, decay  float64
		momentum, squares float64
	}{
		{nil, 1e-3, 1e-3, 0.1, 0.95, 0.95},
		{[]string{"optimizer.lr=0.004"}, 0.004, 0.004, 0.1, 0.95, 0.95},
		{[]string{"optimizer.muon_scale=jordan"}, 0.02, 1e-3, 0.005, 0.95, 0.95},
		{[]string{"optimizer.muon_scale=spectral_mup", "optimizer.adamw_lr=0.002"}, 0.02, 0.002, 0.005, 0.95, 0.95},
	} {
		cfg, err := parse([]byte(minimal), "run.yaml", append([]string{"optimizer.name=muon"}, c.set...))
		if err != nil {
			t.Fatal(err)
		}
		o := cfg.Optimizer
		if o.LR != c.lr || o.AdamWLR != c.adamw || o.WeightDecay != c.decay || o.Momentum != c.momentum ||
			o.Beta2 != c.squares {
			t.Errorf("%v: %+v, want %+v", c.set, o, c)
		}
	}
}

func TestMuonAndSophiaRefuseWhatCannotWork(t *testing.T) {
	for _, c := range []struct {
		key, says string
		set       []string
	}{
		{"optimizer.muon_scale", "spectral_mup", []string{"optimizer.name=muon", "model.mup=true"}},
		{"optimizer.muon_scale", "match_rms, jordan, spectral_mup",
			[]string{"optimizer.name=muon", "optimizer.muon_scale=spectral"}},
		{"optimizer.newton_schulz", "polar_express, jordan",
			[]string{"optimizer.name=muon", "optimizer.newton_schulz=cubic"}},
		{"optimizer.newton_schulz_operands", "precision = fp64",
			[]string{"optimizer.name=muon", "optimizer.newton_schulz_operands=bf16", "precision=fp64"}},
		{"optimizer.momentum", "[0, 1)", []string{"optimizer.name=muon", "optimizer.momentum=1"}},
		{"optimizer.adamw_lr", "(0,", []string{"optimizer.name=muon", "optimizer.adamw_lr=0"}},
		{"optimizer.normuon", "adamw", []string{"optimizer.normuon=true"}},
		{"optimizer.adamw_lr", "sophia", []string{"optimizer.name=sophia", "optimizer.adamw_lr=0.1"}},
		{"optimizer.rho", "muon", []string{"optimizer.name=muon", "optimizer.rho=0.1"}},
		{"optimizer.rho", "(0,", []string{"optimizer.name=sophia", "optimizer.rho=0"}},
		{"optimizer.hessian_every", "too small", []string{"optimizer.name=sophia", "optimizer.hessian_every=0"}},
		{"optimizer.hessian_every", "adamw", []string{"optimizer.hessian_every=5"}},
		{"optimizer.beta1", "[0, 1)", []string{"optimizer.name=sophia", "optimizer.beta1=1"}},
	} {
		p := problemsOf(t, minimal, c.set...)
		if len(p) != 1 || p[0].Key != c.key || !strings.Contains(p[0].Error(), c.says) {
			t.Errorf("%v: %+v, want one of %s with %q", c.set, p, c.key, c.says)
		}
	}
}
