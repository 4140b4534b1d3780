package train

import (
	"anneal/autograd"
	"anneal/config"
	"anneal/device"
	"anneal/model"
	"anneal/nn"
	"anneal/precision"
)

// PolicyOf returns the precision policy of a configuration, with the recipe of fp8.*.
func PolicyOf(cfg *config.Config) (precision.Policy, error) {
	p, err := precision.Lookup(cfg.Precision)
	if err == nil && p.FP8 != nil {
		p.FP8 = &precision.FP8{
			Delayed: cfg.FP8.Scaling == "delayed", History: cfg.FP8.History, Margin: cfg.FP8.Margin,
			Blocks: precision.BlocksOf(cfg.FP8.Scaling), Attention: cfg.FP8.Attention,
		}
	}
	return p, err
}

// delayed calls a function for each delayed scale of a model, with its parameter and operand; other recipes have none.
func delayed(m *model.Decoder, yield func(p *nn.Param, operand string, s *precision.Delayed)) {
	for _, p := range m.Params() {
		if p.FP8 == nil {
			continue
		}
		for _, x := range []struct {
			name string
			s    autograd.Scaler
		}{{"x", p.FP8.X}, {"w", p.FP8.W}, {"dy", p.FP8.DY}} {
			if d, ok := x.s.(*precision.Delayed); ok {
				yield(p, x.name, d)
			}
		}
	}
}

// beginFP8Step and undoFP8Step let a step that is stopped between two micro-batches leave the scales as they were.
func (t *Trainer) beginFP8Step() {
	delayed(t.model, func(_ *nn.Param, _ string, s *precision.Delayed) { s.BeginStep() })
}

func (t *Trainer) undoFP8Step() {
	delayed(t.model, func(_ *nn.Param, _ string, s *precision.Delayed) { s.UndoStep() })
}

// endFP8Step sets the scales of the next step.
func (t *Trainer) endFP8Step() {
	delayed(t.model, func(_ *nn.Param, _ string, s *precision.Delayed) { s.EndStep() })
}

// scaleTensors lists the delayed scales with their histories, which evaluation uses as well.
func scaleTensors(m *model.Decoder) []Tensor {
	var list []Tensor
	delayed(m, func(p *nn.Param, operand string, s *precision.Delayed) {
		x := wholeTensor(p.Name+".fp8."+operand, &s.State, device.Host{}, OfModel)
		x.Volatile = true
		list = append(list, x)
	})
	return list
}
