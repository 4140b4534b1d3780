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

	pairs int64 // of the batch that was counted last
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

// AttentionBytes returns what attention takes outside the arenas when rows of the context's length are trained on: the layouts of
// patterns, and the most that kernels need for a layer, by what scratch says of its heads and mask.
func (m *Decoder) AttentionBytes(scratch func(device.Heads, device.Mask) int) (layouts, kernels int64) {
	counted := map[*pattern]bool{}
	for _, b := range m.blocks {
		a := &b.shared().attention
		if counted[a.seen] || a.linear {
			continue
		}
		counted[a.seen] = true
		layouts += sparse.Bytes(a.seen.layout)
		kernels = max(kernels, int64(scratch(a.heads, device.Mask{Len: m.Config.Context, Layout: a.seen.layout, Slopes: a.slopes})))
	}
	return layouts, kernels
}
