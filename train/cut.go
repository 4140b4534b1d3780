package train

import (
	"errors"
	"fmt"

	"anneal/autograd"
	"anneal/config"
	"anneal/model"
	"anneal/optim"
	"anneal/parallel"
)

// overPeers returns the optimizer of ranks that share layers and update their parts of parameters.
func overPeers(o optim.Optimizer, mesh *parallel.Mesh) optim.Optimizer {
	switch o.(type) {
	case *optim.Muon, *optim.Adafactor:
		if mesh.Tensor > 1 {
			peers := parallel.NewPeers("what ranks that share a matrix update", mesh.Peers)
			return &optim.Cut{Optimizer: o, Peers: peers}
		}
	}
	return o
}

// checkCut refuses models that cannot be cut, and options that do not work on cut parameters.
func checkCut(cfg *config.Config, o optim.Optimizer, m *model.Decoder) error {
	if cfg.Parallel.Tensor <= 1 {
		return nil
	}
	var cut *model.CutError
	if errors.As(m.Config.CheckTensors(cfg.Parallel.Tensor), &cut) {
		return config.Problem{Key: cut.Key, At: cfg.Origin(cut.Key).Place(), Message: cut.Text, Try: cut.Try}
	}
	refuse := func(key, value, why, try string) error {
		return config.Problem{
			Key: "parallel.tensor", Try: "parallel.tensor = 1, or " + try,
			Message: fmt.Sprintf("%s = %s does not work with parallel.tensor = %d: %s", key, value,
				cfg.Parallel.Tensor, why),
		}
	}
	switch name := cfg.Optimizer.Name; {
	case name == "adam8bit":
		return refuse("optimizer.name", name, "its blocks of 256 elements would be others than one rank's",
			"optimizer.name = adamw")
	case name == "sophia":
		return refuse("optimizer.name", name,
			"it samples labels, and a rank has the logits of a part of the vocabulary", "optimizer.name = adamw")
	case name == "muon" && cfg.Optimizer.NorMuon:
		return refuse("optimizer.normuon", "true",
			"it keeps a number for every row of a matrix, whoever has its columns", "optimizer.normuon = false")
	}
	if _, whole := o.(*optim.Cut); whole {
		return nil
	}
	for _, p := range m.Params() {
		if p.Cut != autograd.Whole && optim.Divide(o, p) != optim.Elements {
			return refuse("optimizer.name", cfg.Optimizer.Name,
				"its update of "+p.Name+" needs more than a rank's part", "optimizer.name = adamw")
		}
	}
	return nil
}
