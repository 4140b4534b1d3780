package config

import (
	"slices"

	"anneal/attention"
)

// TurnsNothing says why no layer of the model has rotary positions.
func (c *Config) TurnsNothing() string {
	if m := &c.Model; slices.Contains(m.Positions, "rope") {
		return "model.attention = " + m.Attention.String() + ": layers of linear attention have no rotary positions"
	}
	return "model.positions = " + c.Model.Positions.String() + ", which turns nothing"
}

// linear checks that no layer of linear attention has ALiBi.
func (k *checker) linear() {
	m := &k.c.Model
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
