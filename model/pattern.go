package model

import (
	"slices"

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

// AttentionBytes returns what attention takes outside the arenas when sequences of the context's length are trained on: the
// layouts of patterns, and for each worker the sums of one key-value head's gradients over a row, in numbers of size bytes.
func (m *Decoder) AttentionBytes(sequences, workers, size int) (layouts, sums int64) {
	counted := map[*pattern]bool{}
	for _, b := range m.blocks {
		a := &b.shared().attention
		if counted[a.seen] || a.linear {
			continue
		}
		counted[a.seen] = true
		layouts += sparse.Bytes(a.seen.layout)
		heads := int64(2) // of keys and values
		if a.seen.overlaps() {
			heads++ // of the queries that several blocks hold
		}
		sums = max(sums, heads*int64(a.heads.Size))
	}
	c := m.Config
	return layouts, sums * int64(c.Context) * int64(size) * int64(min(workers, sequences*c.KVHeads))
}

// overlaps reports whether some query is in more than one block.
func (p *pattern) overlaps() bool {
	return p.layout != nil && slices.ContainsFunc(p.layout.Graphs, func(g device.Graph) bool { return g.Overlap })
}
