package config

import (
	"slices"

	"anneal/attention"
	"anneal/model"
)

// positionsOf returns the schemes and the patterns that the first layers have, until both lists begin again; neither
// if one of them is wrong, which is said elsewhere.
func (m *Model) positionsOf() (schemes []string, patterns []attention.Pattern) {
	s, err := model.ParsePositions(m.Positions)
	p, wrong := attention.ParseList(m.Attention)
	if err != nil || wrong != nil {
		return nil, nil
	}
	for i := range max(1, min(m.Layers, len(s)*len(p))) {
		schemes, patterns = append(schemes, s[i%len(s)]), append(patterns, p[i%len(p)])
	}
	return schemes, patterns
}

// Rotates reports whether a layer has rotary positions, as no layer of linear attention does.
func (m *Model) Rotates() bool {
	schemes, patterns := m.positionsOf()
	for i, p := range patterns {
		if _, linear := p.(attention.Linear); schemes[i] == "rope" && !linear {
			return true
		}
	}
	return false
}

// TurnsNothing says why no layer has rotary positions.
func (m *Model) TurnsNothing() string {
	if schemes, _ := m.positionsOf(); slices.Contains(schemes, "rope") {
		return "model.attention = " + m.Attention + ": layers of linear attention have no rotary positions"
	}
	return "model.positions = " + m.Positions + ", which turns nothing"
}

// biased reports whether the model has biases: all of gpt2, and those of the gates of linear attention.
func (m *Model) biased() bool {
	_, patterns := m.positionsOf()
	return m.Family == "gpt2" || slices.Contains(patterns, attention.Pattern(attention.Linear{Gated: true}))
}

// linear checks that no layer of linear attention has ALiBi.
func (k *checker) linear() {
	schemes, patterns := k.c.Model.positionsOf()
	for i, p := range patterns {
		if _, linear := p.(attention.Linear); linear && schemes[i] == "alibi" {
			k.fault("model.positions", "model.positions = none, or a list in which no layer of linear attention has alibi",
				"layer %d combines model.attention = %v with model.positions = alibi, but linear attention has no scores that ALiBi could lower", i, p)
			return
		}
	}
}
