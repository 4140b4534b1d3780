package train

import (
	"fmt"

	"anneal/autograd"
	"anneal/config"
	"anneal/model"
	"anneal/optim"
)

// checkCut refuses what does not work on parameters that ranks of tensor parallelism share.
func checkCut(cfg *config.Config, o optim.Optimizer, m *model.Decoder) error {
	if cfg.Parallel.Tensor <= 1 {
		return nil
	}
	for _, p := range m.Params() {
		if p.Cut == autograd.Whole {
			continue
		}
		if d := optim.Divide(o, p); d != optim.Elements || cfg.Optimizer.Name == "adam8bit" {
			return config.Problem{
				Key: "parallel.tensor", Try: "parallel.tensor = 1, or optimizer.name = adamw",
				Message: fmt.Sprintf("optimizer.name = %s does not work with parallel.tensor = %d yet: its update of %s "+
					"needs more than a rank's part of it", cfg.Optimizer.Name, cfg.Parallel.Tensor, p.Name),
			}
		}
	}
	return nil
}
