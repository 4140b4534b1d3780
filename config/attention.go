package config

import (
	"errors"
	"strings"

	"anneal/attention"
)

const attentionDoc = "Which earlier tokens a token attends to: a pattern, or a list that layers take in turn, such as [window:256, window:256, full]. Options " +
	"can be left out, or given by name as in bigbird:random=5. All but full take time in proportion to the tokens attended to. Linear layers have no rotary positions. " +
	"`anneal attention show PATTERN` draws a pattern."

// resolveAttention completes patterns whose options follow from the context and the seed, so that the run's file holds
// the graph it is trained with.
func (c *Config) resolveAttention() {
	patterns, err := attention.ParseList(c.Model.Attention)
	if err != nil || c.Model.Context < 1 {
		return // Validate says so
	}
	complete := make([]string, len(patterns))
	for i, p := range patterns {
		complete[i] = p.Resolve(c.Model.Context, c.Seed).String()
	}
	c.Model.Attention = strings.Join(complete, ",")
}

// attention checks the patterns of the layers.
func (k *checker) attention() {
	const key = "model.attention"
	m := &k.c.Model
	fault := func(err error) {
		if e := new(attention.Error); errors.As(err, &e) {
			k.fault(key, e.Try, "%s: %s", key, e.Message)
		}
	}
	patterns, err := attention.ParseList(m.Attention)
	if err != nil {
		fault(err)
		return
	}
	if len(patterns) > m.Layers && m.Layers > 0 {
		k.fault(key, "at most one pattern per layer; layers take the patterns of a shorter list in turn", "%s lists %d patterns for model.layers = %d", key, len(patterns), m.Layers)
	}
	if m.Context < 1 || m.Heads < 1 || m.Layers < 1 {
		return // said elsewhere
	}
	if err := attention.CheckLayers(patterns, m.Context, m.Heads, m.Layers); err != nil {
		fault(err)
	}
}
