package train

import (
	"anneal/config"
	"anneal/nn"
	"anneal/optim"
	"anneal/tensor"
)

// newMuon returns Muon with the scale and iteration of the configuration.
func newMuon(o config.Optimizer) *optim.Muon {
	m := &optim.Muon{
		Momentum: o.Momentum, Iteration: optim.PolarExpress(), Scale: optim.MatchRMS,
		Rest: optim.AdamW{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps},
	}
	if o.NewtonSchulz == "jordan" {
		m.Iteration = optim.Jordan()
	}
	if o.NewtonSchulzIn == "bf16" {
		m.Iteration.Operand = tensor.BF16
	}
	switch o.MuonScale {
	case "jordan":
		m.Scale = optim.JordanScale
	case "spectral_mup":
		m.Scale = optim.SpectralScale
	}
	if o.NorMuon {
		m.RowBeta = o.Beta2
	}
	return m
}

// checkMuon returns an error for a model without matrices for Muon, all of which AdamW would train.
func checkMuon(cfg *config.Config, m *optim.Muon, params []*nn.Param) error {
	for _, p := range params {
		if m.Orthogonalises(p) && group(cfg.Optimizer, p).LRRatio > 0 {
			return nil
		}
	}
	return config.Problem{
		Key: "optimizer.name", At: cfg.Origin("optimizer.name").Place(),
		Message: "optimizer.name = muon trains 2-D hidden matrices, but the model has none or " +
			"optimizer.groups.matrix.lr_ratio = 0 freezes them",
		Try: "optimizer.name = adamw",
	}
}
