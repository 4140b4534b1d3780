package train

import (
	"fmt"

	"anneal/nn"
	"anneal/optim"
	"anneal/train/config"
)

// newMuon returns Muon with the scale and the iteration that the configuration names.
func newMuon(o config.Optimizer) *optim.Muon {
	m := &optim.Muon{
		Momentum: o.Momentum, Iteration: optim.PolarExpress(), Scale: optim.MatchRMS,
		Rest: optim.AdamW{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps},
	}
	if o.NewtonSchulz == "jordan" {
		m.Iteration = optim.Jordan()
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

// checkMuon refuses a model without any matrix for Muon to train, all of which it would leave to AdamW.
func checkMuon(cfg *config.Config, m *optim.Muon, params []*nn.Param) error {
	for _, p := range params {
		if m.Orthogonalises(p) && group(cfg.Optimizer, p.Role).LRRatio > 0 {
			return nil
		}
	}
	return config.Problem{
		Key: "optimizer.name", At: cfg.Origin("optimizer.name").Place(),
		Message: "optimizer.name = muon trains 2-D hidden matrices, but the model has none or optimizer.groups.matrix.lr_ratio = 0 freezes them",
		Try:     "optimizer.name = adamw",
	}
}

// muonShare is the part of a step's operations above which Muon's own are worth a remark.
const muonShare = 0.05

// OptimizerRemark says what is unusual about the cost of the optimizer for the batch of a configuration, "" if nothing is.
func (p *Plan) OptimizerRemark(cfg *config.Config) string {
	o, batch := p.Optimizer, float64(cfg.Train.BatchTokens)
	training := p.FLOPsPerToken * batch
	if o.FLOPs <= muonShare*training {
		return ""
	}
	return fmt.Sprintf("%s orthogonalises every matrix once per step: %.0f %% of the operations of training at train.batch_tokens = %d; "+
		"at %.0f tokens it would be %.0f %%", o.Name, 100*o.FLOPs/training, cfg.Train.BatchTokens, o.FLOPs/training/muonShare*batch, 100*muonShare)
}
