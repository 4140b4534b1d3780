package plan

import (
	"fmt"

	"anneal/config"
	"anneal/internal/units"
)

// muonShare is the share of Muon's own operations in a step above which they deserve a remark.
const muonShare = 0.05

// OptimizerRemark returns a remark if the optimizer is unusually expensive for the batch of a configuration, else "".
func (p *Plan) OptimizerRemark(cfg *config.Config) string {
	o, batch := p.Optimizer, float64(cfg.Train.BatchTokens)
	training := p.FLOPsPerToken * batch
	if o.FLOPs <= muonShare*training {
		return ""
	}
	return fmt.Sprintf("%s orthogonalises every matrix once per step: %.0f %% of the operations of training at "+
		"train.batch_tokens = %d; at %s tokens it would be %.0f %%",
		o.Name, 100*o.FLOPs/training, cfg.Train.BatchTokens,
		units.Commas(int64(o.FLOPs/training/muonShare*batch)), 100*muonShare)
}
