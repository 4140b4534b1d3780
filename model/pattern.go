package model

import (
	sparse "anneal/attention"
	"anneal/device"
	"anneal/tensor"
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
// the configuration is checked before. The patterns are those of the heads that are here.
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
// length: the layouts of patterns, and what the device's kernels take for the layer that needs most.
func (m *Decoder) AttentionBytes(
	dev device.Properties, storage tensor.DType, tokens int,
) (layouts, kernels int64) {
	var softmax, linear int
	counted, length := map[*pattern]bool{}, m.Config.Context
	for _, b := range m.blocks {
		a := b.attention
		if a.linear {
			linear = max(linear, dev.LinearAttentionScratch(storage, tokens, length, a.heads, a.gate != nil))
			continue
		}
		if counted[a.seen] {
			continue
		}
		counted[a.seen] = true
		layouts += sparse.Bytes(a.seen.layout)
		mask := device.Mask{Len: length, Layout: a.seen.layout, Slopes: a.slopes}
		softmax = max(softmax, dev.AttentionScratch(storage, tokens, a.heads, mask))
	}
	return layouts, int64(softmax + linear)
}
