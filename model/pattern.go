package model

import (
	sparse "anneal/attention"
	"anneal/autograd"
	"anneal/device"
)

// pattern is the set of keys that the queries of a layer see. Layers with equal patterns share one.
type pattern struct {
	layout *device.Layout // nil for full attention
	heads  int

	length int // row length of the last count
	part   float64

	pairs int64 // of the batch that was counted last
}

// patterns compiles Config.Attention for every layer. It panics on patterns that do not fit the context or the heads:
// the configuration is checked before. The patterns cover the heads that this rank has.
func patterns(c Config, part Part) []*pattern {
	layouts, err := sparse.CompileLayers(c.Attention, c.Context, c.Heads, c.Layers)
	if err != nil {
		panic("model: " + err.Error())
	}
	layers, made := make([]*pattern, c.Layers), map[*device.Layout]*pattern{}
	heads := part.share(c.Heads)
	for i, l := range layouts {
		if made[l] == nil {
			made[l] = &pattern{layout: l.Cut(heads.From, heads.To), heads: heads.Len()}
		}
		layers[i] = made[l]
	}
	return layers
}

// density returns the share of the causal pairs in rows of n tokens that the pattern sees.
func (p *pattern) density(n int) float64 {
	if p.layout == nil {
		return 1
	}
	if p.length != n {
		p.length, p.part = n, sparse.Measure(p.layout, n, p.heads).Density
	}
	return p.part
}

// AttentionBytes returns the memory of attention outside the arenas when training on tokens in rows of the context's
// length: the layouts of patterns, and the memory of the device's kernels for the layer that needs most.
func (m *Decoder) AttentionBytes(
	dev device.Properties, types autograd.Types, tokens int,
) (layouts, kernels int64) {
	return m.attentionBytes(dev, types, func(a *attention) []autograd.Call {
		mask := device.Mask{Len: m.Config.Context, Layout: a.seen.layout, Slopes: a.slopes}
		return a.globalCalls([]autograd.Call{{Tokens: tokens, Heads: a.heads, Mask: mask}}, mask.Len)
	})
}

// AttentionPartBytes is AttentionBytes for a rank that has parts of so many rows, with parts from NewBatchPart.
func (m *Decoder) AttentionPartBytes(
	dev device.Properties, types autograd.Types, parts *autograd.Parts,
) (layouts, kernels int64) {
	return m.attentionBytes(dev, types, func(a *attention) []autograd.Call {
		mask := device.Mask{Layout: a.seen.layout, Slopes: a.slopes}
		return parts.Calls(a.heads, mask, a.linear)
	})
}

// attentionBytes asks the device about the calls that each layer makes. A layer of linear attention makes only the
// last call.
func (m *Decoder) attentionBytes(
	dev device.Properties, types autograd.Types, calls func(a *attention) []autograd.Call,
) (layouts, kernels int64) {
	var softmax, linear int
	counted, known := map[*pattern]bool{}, map[*device.Graph]bool{} // layouts may share their graphs
	add := func(l *device.Layout) {
		if l != nil && !known[&l.Graphs[0]] {
			known[&l.Graphs[0]] = true
			layouts += sparse.Bytes(l)
		}
	}
	for _, b := range m.blocks {
		a := b.attention
		if !a.linear && counted[a.seen] {
			continue
		}
		for _, c := range calls(a) {
			if a.linear {
				linear = max(linear, dev.LinearAttentionScratch(types.Activation, c.Tokens, c.Mask.Len, c.Heads,
					a.gate != nil))
				continue
			}
			add(c.Mask.Layout)
			c.Heads.FP8 = types.FP8Heads
			softmax = max(softmax, dev.AttentionScratch(types.Activation, c.Tokens, c.Heads, c.Mask))
		}
		if !a.linear {
			counted[a.seen] = true
			add(a.seen.layout)
		}
	}
	return layouts, int64(softmax + linear)
}
