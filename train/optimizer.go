package train

import (
	"fmt"
	"strings"

	"anneal/config"
	"anneal/model"
	"anneal/nn"
	"anneal/optim"
	"anneal/tensor"
)

// NewOptimizer returns the update rule of a valid, resolved configuration.
func NewOptimizer(o config.Optimizer) optim.Optimizer {
	switch o.Name {
	case "adamw", "adam":
		rule := optim.AdamW{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps}
		switch {
		case o.Moments == "bf16":
			return &optim.Adam16bit{AdamW: rule, Coupled: o.Name == "adam"}
		case o.Name == "adam":
			return optim.Adam(rule)
		}
		return rule
	case "adam8bit":
		return optim.Adam8bit{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps}
	case "sgd":
		return optim.SGD{Momentum: o.Momentum, Dampening: o.Dampening, Nesterov: o.Nesterov}
	case "lion":
		return optim.Lion{Beta1: o.Beta1, Beta2: o.Beta2}
	case "ademamix":
		return optim.AdEMAMix{Beta1: o.Beta1, Beta2: o.Beta2, Beta3: o.Beta3, Alpha: o.Alpha, Eps: o.Eps, Ramp: o.Ramp}
	case "adafactor":
		palm := o.Variant == "palm"
		return &optim.Adafactor{
			Beta1: o.Beta1, Whole: palm, DecayByRate: palm, RelativeStep: o.RelativeStep, Unscaled: !o.ScaleParameter,
		}
	case "muon":
		return newMuon(o)
	case "soap":
		return &optim.SOAP{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps, Every: o.BasisEvery}
	case "schedulefree":
		return optim.ScheduleFree{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps}
	case "sophia":
		return &optim.Sophia{Beta1: o.Beta1, Beta2: o.Beta2, Rho: o.Rho, Every: o.HessianEvery}
	}
	panic(fmt.Sprintf("train: unknown optimizer %q", o.Name))
}

// ruleOf returns the update rule of a valid, resolved configuration, wrapped by Masters64 and EWC if it asks for them.
func ruleOf(cfg *config.Config) optim.Optimizer {
	rule := NewOptimizer(cfg.Optimizer)
	switch o := rule.(type) {
	case optim.ScheduleFree:
		o.Warmup = cfg.Schedule.Warmup
		rule = o
	case *optim.Adam16bit:
		o.Seed = cfg.Seed
	}
	if cfg.Optimizer.Masters == "f64" {
		rule = &optim.Masters64{Optimizer: rule}
	}
	if cfg.Init.EWC > 0 {
		return optim.EWC{Optimizer: rule, Strength: cfg.Init.EWC}
	}
	return rule
}

// checkTrained returns an error if a pattern of names matches no parameter that it could change, or makes a decay
// remove a whole weight, or if the whole model is frozen.
func checkTrained(cfg *config.Config, m *model.Decoder) error {
	var targets, trained []string // matrices that may have adapters, by their names in a layer; trained parameters
	moves := false
	for _, p := range m.Params() {
		if p.Role == nn.Matrix && model.LayerOf(p) >= 0 && !model.IsAdapter(p) {
			targets = append(targets, strings.SplitN(p.Name, ".", 3)[2]) // after layers.N
		}
		if !p.Frozen {
			trained = append(trained, p.Name)
			g := group(cfg.Optimizer, p)
			moves = moves || g.LRRatio > 0
			if err := checkDecay(cfg.Optimizer.LR*g.LRRatio, g.WeightDecay, p.Name); err != nil {
				return err
			}
		}
	}
	if err := cfg.CheckTargets(targets); err != nil {
		return err
	}
	if err := cfg.Optimizer.Patterns.Check(trained); err != nil {
		return err
	}
	if !moves { // config refuses groups of which all are frozen, but does not know names
		return config.Problem{
			Key: "optimizer.patterns", Try: "an lr_ratio above 0 for some parameters",
			Message: "optimizer.patterns gives every parameter lr_ratio = 0: nothing would be trained",
		}
	}
	return nil
}

// checkDecay refuses a decay by which a parameter would change its sign in one step. Config refuses those of whole
// groups.
func checkDecay(rate, decay float64, name string) error {
	if rate*decay < 1 {
		return nil
	}
	return config.Problem{
		Key: "optimizer.patterns", Try: fmt.Sprintf("a decay below %.3g, or a rate below %.3g", 1/rate, 1/decay),
		Message: fmt.Sprintf("optimizer.patterns: a weight decay of %.3g at the rate %.3g removes more than the whole "+
			"weight of %s in one step", decay, rate, name),
	}
}

// updateRule returns how the optimizer's updates grow with the size of a matrix, for muP.
func updateRule(o config.Optimizer) model.UpdateRule {
	switch o.Name {
	case "sgd":
		return model.Gradient
	case "muon":
		return model.Spectral
	}
	return model.PerElement
}

// updated is a trained parameter, or a piece of one, with its optimizer state and the settings of its group.
type updated struct {
	*nn.Param
	index     int // of the parameter in the model
	state     optim.State
	master    *nn.Param // the parameter as its optimizer sees it: with a weight in the format of its gradient
	lr, decay float64   // factor of the learning rate; weight decay
}

// still reports whether updates never change the parameter.
func (u *updated) still() bool { return u.Frozen || u.lr == 0 }

// layoutUpdated allocates the optimizer state of p, number index of the model, and sets its rate and decay.
func layoutUpdated(o config.Optimizer, opt optim.Optimizer, state *tensor.Arena, p *nn.Param, index int) updated {
	g, master := group(o, p), masterOf(p)
	if p.Frozen {
		return updated{Param: p, index: index, master: master}
	}
	return updated{
		p, index, opt.Layout(state, master), master, g.LRRatio * scale(p.LRScale), g.WeightDecay * scale(p.DecayScale),
	}
}

// scale returns a factor of a parameter; the value 0 stands for 1.
func scale(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

// group returns the group of a parameter, by its role and its name. A tied head belongs to the embedding's group.
// Parameters that muon leaves to AdamW have their own learning rate, which is included in the group's ratio.
func group(o config.Optimizer, p *nn.Param) config.Group {
	g := o.Groups.Matrix
	switch p.Role {
	case nn.Embedding:
		g = o.Groups.Embedding
	case nn.Head:
		g = o.Groups.Head
	case nn.Norm, nn.Scalar:
		g = o.Groups.Norm
	case nn.Bias:
		g = o.Groups.Bias
	}
	g = o.Patterns.Of(p.Name, g)
	if o.Name == "muon" && p.Role != nn.Matrix {
		g.LRRatio *= o.AdamWLR / o.LR
	}
	return g
}

// update updates this rank's parameters at the rate lr, from scale times their gradients, and publishes them unit by
// unit. With groups that step separately, weights are published when the step ends.
func (t *Trainer) update(lr, scale float64) error {
	t.tape.Reset(false) // the update may use the memory of temporaries
	s := optim.Step{
		T: t.progress.Updates, Scale: scale, Cautious: t.cfg.Optimizer.CautiousDecay,
		Momentum: Momentum(t.cfg, t.progress.Updates), Decay: DecayLeft(t.cfg, t.progress.Updates),
	}
	t.offload.begin()
	next := 0
	for u, end := range t.ends {
		for ; next < len(t.updated) && t.updated[next].index < end; next++ {
			t.updateParam(next, lr, s)
		}
		if u == 0 {
			t.forgetReplica()
		}
		if t.outer != nil {
			continue
		}
		if err := t.between.Publish(u); err != nil {
			return err
		}
	}
	return t.offload.end()
}

// updateParam updates parameter i of this rank, piece by piece if its state is in a file.
func (t *Trainer) updateParam(i int, lr float64, s optim.Step) {
	if t.offload == nil {
		t.updateOne(&t.updated[i], lr, s)
		return
	}
	for k := t.offload.first[i]; k < t.offload.first[i+1]; k++ {
		t.offload.await(k)
		t.updateOne(&t.offload.pieces[k], lr, s)
		t.offload.release(k)
	}
}

func (t *Trainer) updateOne(p *updated, lr float64, s optim.Step) {
	if p.Frozen {
		return
	}
	s.LR, s.Decay, s.EpsScale = lr*p.lr, s.Decay*p.decay, p.EpsScale
	if t.ratios.due {
		t.measured(p, s)
		return
	}
	t.apply(p, s)
}

// apply changes a weight by one update of the optimizer.
func (t *Trainer) apply(p *updated, s optim.Step) {
	if p.Param != p.master {
		t.updateRounded(p, s)
		return
	}
	t.opt.Update(t.dev, p.Param, p.state, s, t.scratch)
}
