package train

import (
	"fmt"

	"anneal/model"
	"anneal/nn"
	"anneal/optim"
	"anneal/plan"
	"anneal/precision"
	"anneal/tensor"
	"anneal/train/config"
)

// NewOptimizer returns the update rule of a valid, resolved configuration.
func NewOptimizer(o config.Optimizer) optim.Optimizer {
	switch o.Name {
	case "adamw":
		return optim.AdamW{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps}
	case "adam8bit":
		return optim.Adam8bit{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps}
	case "adam":
		return optim.Adam{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps}
	case "sgd":
		return optim.SGD{Momentum: o.Momentum, Dampening: o.Dampening, Nesterov: o.Nesterov}
	case "lion":
		return optim.Lion{Beta1: o.Beta1, Beta2: o.Beta2}
	case "ademamix":
		return optim.AdEMAMix{Beta1: o.Beta1, Beta2: o.Beta2, Beta3: o.Beta3, Alpha: o.Alpha, Eps: o.Eps, Ramp: o.Ramp}
	case "adafactor":
		palm := o.Variant == "palm"
		return &optim.Adafactor{Beta1: o.Beta1, Whole: palm, DecayByRate: palm, RelativeStep: o.RelativeStep, Unscaled: !o.ScaleParameter}
	case "muon":
		return newMuon(o)
	case "sophia":
		return &optim.Sophia{Beta1: o.Beta1, Beta2: o.Beta2, Rho: o.Rho, Every: o.HessianEvery}
	}
	panic(fmt.Sprintf("train: unknown optimizer %q", o.Name))
}

// updateRule says how the optimizer's updates grow with a matrix, for muP.
func updateRule(o config.Optimizer) model.UpdateRule {
	switch o.Name {
	case "sgd":
		return model.Gradient
	case "muon":
		return model.Spectral
	}
	return model.PerElement
}

// A trained parameter with what its optimizer keeps and how its group goes.
type updated struct {
	*nn.Param
	state     optim.State
	master    *nn.Param // the parameter as its optimizer sees it: with a weight in the format of its gradient
	lr, decay float64   // the factor of the learning rate; the weight decay
}

// layoutOptimizer lays out the optimizer's state of every parameter and settles rates and decays.
func layoutOptimizer(o config.Optimizer, opt optim.Optimizer, state *tensor.Arena, params []*nn.Param) []updated {
	list := make([]updated, len(params))
	for i, p := range params {
		g, master := group(o, p.Role), masterOf(p)
		list[i] = updated{p, opt.Layout(state, master), master, g.LRRatio * scale(p.LRScale), g.WeightDecay * scale(p.DecayScale)}
	}
	return list
}

// scale returns a factor of a parameter, for which 0 stands for 1.
func scale(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

// group returns the group of a role. A tied head is the embedding and goes by its group. What muon leaves to AdamW has a rate
// of its own, which the ratio takes in.
func group(o config.Optimizer, r nn.Role) config.Group {
	g := o.Groups.Matrix
	switch r {
	case nn.Embedding:
		g = o.Groups.Embedding
	case nn.Head:
		g = o.Groups.Head
	case nn.Norm, nn.Scalar:
		g = o.Groups.Norm
	case nn.Bias:
		g = o.Groups.Bias
	}
	if o.Name == "muon" && r != nn.Matrix {
		g.LRRatio *= o.AdamWLR / o.LR
	}
	return g
}

// update makes one update of every parameter at the rate lr from scale times its gradient.
func (t *Trainer) update(lr, scale float64) {
	t.tape.Reset(false) // the update may use the memory of temporaries
	s := optim.Step{T: t.progress.Updates, Scale: scale, Cautious: t.cfg.Optimizer.CautiousDecay}
	for i, p := range t.updated {
		s.LR, s.Decay = lr*p.lr, p.decay
		if p.Param != p.master {
			t.updateRounded(i, s)
			continue
		}
		t.opt.Update(t.dev, p.Param, p.state, s, t.scratch)
	}
}

// measureOptimizer returns the bytes of the state and of the scratch memory that a model's optimizer needs,
// and the operations that count beside those of training. It refuses an optimizer that has nothing to do.
func measureOptimizer(cfg *config.Config, c model.Config, policy precision.Policy) (plan.Optimizer, error) {
	params, opt := model.Outline(c, policy).Params(), NewOptimizer(cfg.Optimizer)
	state, scratch := measureRounded(opt, params)
	p := plan.Optimizer{Name: cfg.Optimizer.Name, State: int64(state), Scratch: int64(scratch)}
	if muon, is := opt.(*optim.Muon); is {
		p.FLOPs = muon.FLOPs(params)
		return p, checkMuon(cfg, muon, params)
	}
	return p, nil
}
