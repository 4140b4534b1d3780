package config

import (
	"errors"
	"slices"

	"anneal/attention"
)

// TurnsNothing explains why no layer of the model has rotary positions.
func (c *Config) TurnsNothing() string {
	if m := &c.Model; slices.Contains(m.Positions, "rope") {
		return "model.attention = " + m.Attention.String() + ": layers of linear attention have no rotary positions"
	}
	return "model.positions = " + c.Model.Positions.String() + ", which turns nothing"
}

// CheckKernels returns a *Problem if a device has no kernel for the attention of some layer, or for a teacher.
func (c *Config) CheckKernels(device string) error {
	if c.Distill.On() && device == "cuda" {
		return &Problem{Key: "distill.teacher", Message: "distill.teacher has no kernels for device = cuda",
			At: c.origins["distill.teacher"].Place(), Try: "device = cpu"}
	}
	for _, p := range c.Model.Attention {
		if l, linear := p.(attention.Linear); linear && device == "cuda" && !l.OnCards() {
			return &Problem{Key: "model.attention", Message: "model.attention = " + l.String() + " has no kernel for " +
				"device = cuda", At: c.origins["model.attention"].Place(), Try: "device = cpu, or linear:gated"}
		}
	}
	return nil
}

// linear checks that the device has kernels for layers of linear attention, and that none of them has ALiBi.
func (k *checker) linear() {
	m := &k.c.Model
	k.between("model.short_conv", m.ShortConv, 0, 16)
	var missing *Problem
	if errors.As(k.c.CheckKernels(k.c.Device), &missing) {
		k.problems = append(k.problems, *missing)
	}
	for i := range max(1, min(m.Layers, len(m.Positions)*len(m.Attention))) { // then both lists begin again
		if p, linear := m.Attention.Of(i).(attention.Linear); linear && m.Positions.Of(i) == "alibi" {
			k.fault("model.positions",
				"model.positions = none, or a list in which no layer of linear attention has alibi",
				"layer %d combines model.attention = %v with model.positions = alibi, but linear attention has no "+
					"scores that ALiBi could lower", i, p)
			return
		}
	}
}
