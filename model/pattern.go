package model

import (
	sparse "anneal/attention"
	"anneal/device"
)

// pattern is which keys the queries of a layer see. Layers that see the same share one.
type pattern struct {
	layout *device.Layout // nil for full attention
	heads  int

	length int // of the rows that were counted last
	part   float64
}

// attention reads Config.Attention.
func (c Config) attention() []sparse.Pattern {
	if c.Attention == "" {
		return []sparse.Pattern{sparse.Full{}}
	}
	list, err := sparse.ParseList(c.Attention)
	if err != nil {
		panic("model: " + err.Error())
	}
	return list
}

// patterns compiles Config.Attention for every layer. It panics on patterns that cannot be used: what comes from outside is
// checked before.
func patterns(c Config) []*pattern {
	layouts, err := sparse.CompileLayers(c.attention(), c.Context, c.Heads, c.Layers)
	if err != nil {
		panic("model: " + err.Error())
	}
	layers, made := make([]*pattern, c.Layers), map[*device.Layout]*pattern{}
	for i, l := range layouts {
		if made[l] == nil {
			made[l] = &pattern{layout: l, heads: c.Heads}
		}
		layers[i] = made[l]
	}
	return layers
}

// density returns which part of the causal pairs of rows of n tokens is seen.
func (p *pattern) density(n int) float64 {
	if p.layout == nil {
		return 1
	}
	if p.length != n {
		p.length, p.part = n, sparse.Measure(p.layout, n, p.heads).Density
	}
	return p.part
}

// PatternBytes returns what the layouts of attention patterns take, on the Go heap.
func (m *Decoder) PatternBytes() int64 {
	var n int64
	counted := map[*pattern]bool{}
	for _, b := range m.blocks {
		if p := b.shared().attention.seen; !counted[p] {
			counted[p] = true
			n += sparse.Bytes(p.layout)
		}
	}
	return n
}
