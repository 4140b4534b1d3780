package config

import (
	"errors"

	"anneal/attention"
)

const attentionDoc = "Which earlier tokens a token attends to: a pattern, or a list that layers take in turn, " +
	"such as [window:256, window:256, full]. Options can be left out, or given by name as in bigbird:random=5. " +
	"All but full take time in proportion to the tokens attended to. Linear layers have no rotary positions. " +
	"`anneal attention show PATTERN` draws a pattern."

// resolveAttention completes patterns whose options follow from the context and the seed, so that the run's file holds
// the graph it is trained with.
func (c *Config) resolveAttention() {
	if m := &c.Model; m.Context >= 1 { // otherwise Validate reports it
		m.Attention = m.Attention.Resolve(m.Context, c.Seed)
	}
}

// attention checks the patterns of the layers.
func (k *checker) attention() {
	const key = "model.attention"
	m := &k.c.Model
	patterns := m.Attention
	if len(patterns) > m.Layers && m.Layers > 0 {
		k.fault(key, "at most one pattern per layer; layers take the patterns of a shorter list in turn",
			"%s lists %d patterns for model.layers = %d", key, len(patterns), m.Layers)
	}
	if m.Context < 1 || m.Heads < 1 || m.Layers < 1 {
		return // said elsewhere
	}
	err := attention.CheckLayers(patterns, m.Context, m.Heads, m.Layers)
	if e := new(attention.Error); errors.As(err, &e) {
		k.fault(key, e.Try, "%s: %s", key, e.Message)
	}
}
