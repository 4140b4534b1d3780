package config

import "math"

// muonValues holds the defaults of muon, which depend on the meaning of its learning rate (muon_scale).
func muonValues(lr, decay float64) map[string]float64 {
	return map[string]float64{
		"lr": lr, "weight_decay": decay, "momentum": 0.95, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8,
		"adamw_lr": math.NaN(), "muon_scale": math.NaN(), "newton_schulz": math.NaN(),
		"newton_schulz_operands": math.NaN(), "normuon": math.NaN(),
		"cautious_decay": math.NaN(),
	}
}

// resolveMuon fills in the rate of parameters that muon leaves to AdamW. If muon's rate has another meaning than
// AdamW's, 0.02 corresponds to 1e-3.
func (c *Config) resolveMuon() {
	const key = "optimizer.adamw_lr"
	o := &c.Optimizer
	switch {
	case o.Name != "muon":
		c.deriveNumber(key, 0, o.Name+" has none")
	case o.MuonScale == "match_rms":
		c.deriveNumber(key, o.LR, "adamw_lr = lr")
	default:
		c.deriveNumber(key, o.LR/20, "adamw_lr = lr / 20")
	}
}

// muon refuses combinations that muon does not support.
func (k *checker) muon() {
	o := &k.c.Optimizer
	if o.Name != "muon" {
		return
	}
	const operands = "optimizer.newton_schulz_operands"
	if o.NewtonSchulzIn == "bf16" && k.c.Precision == "fp64" && !k.reported(operands) {
		k.fault(operands, operands+" = f32",
			"%s = bf16 does not work with precision = fp64, whose products are not rounded", operands)
	}
	if o.MuonScale == "match_rms" && k.c.Model.MuP {
		k.fault("optimizer.muon_scale", "optimizer.muon_scale = spectral_mup",
			"optimizer.muon_scale = match_rms makes updates grow with the width, which model.mup must prevent")
	}
}
