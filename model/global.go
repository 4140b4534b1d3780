package model

import (
	sparse "anneal/attention"
	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// Longformer's global tokens can have queries, keys and values of their own (Beltagy et al. 2020, arXiv 2004.05150,
// §3.1), so that one set of weights need not serve both the summary of a row's beginning and the local windows;
// autograd.GlobalTokens has the formula. In a causal model they do little: the first tokens of a row see only each
// other, and the projections apply to nothing else.
//
// Parameters: D·(H+2K)·E for each layer of longformer. Time: that product for the global tokens, and their attention
// to each other; the shared projections are computed for them as well, because later tokens see these. Memory: what a
// layer keeps of its projection and its input, for the global tokens alone. In generation a layer also caches the keys
// and values of the global tokens. Default: off. Not for models whose rows begin anywhere in a text: there nothing
// sets their first tokens apart.

// globalTokens returns how many tokens of a row use the separate global projections in a layer; 0 for none.
func (c Config) globalTokens(layer int) int {
	if l, ok := c.Attention.Of(layer).(sparse.Longformer); ok && c.LongformerGlobalProjections {
		return min(l.Global, c.Context)
	}
	return 0
}

// hasGlobalTokens reports whether some layer has separate projections for global tokens.
func (c Config) hasGlobalTokens() bool { return c.mostGlobal() != nil }

// mostGlobal returns the pattern with the most global tokens that use separate projections; nil if there is none.
func (c Config) mostGlobal() (most sparse.Pattern) {
	top := 0
	for i, p := range c.Attention {
		if n := c.globalTokens(i); n > top {
			most, top = p, n
		}
	}
	return most
}

// global declares the projections of the global tokens of a's layer, if it has any.
func (b *builder) global(a *attention, parts ...nn.Part) {
	c := b.config
	n := c.globalTokens(b.layer)
	if n == 0 {
		return
	}
	w := b.columnParallel("attention.global_qkv", b.width, c.HeadDim, parts...)
	b.sumKeyValues(a, w)
	w.Share = float64(n) / float64(c.Context)
	a.global = &autograd.GlobalTokens{N: n, Weight: &w.Param, Heads: a.heads, Slopes: a.slopes, Eps: a.eps}
	if a.rope != nil {
		a.global.Cos, a.global.Sin = &a.rope.Cos, &a.rope.Sin
	}
}

// globalFLOPs counts the products of attention between global tokens, in rows of t tokens. start [N] is the position
// in its row at which each token's document begins.
func (a *attention) globalFLOPs(start []int32, t int) float64 {
	n, pairs := min(a.global.N, t), 0
	for i, from := range start {
		if at := i % t; at < n {
			pairs += at + 1 - int(from)
		}
	}
	return 4 * float64(pairs) * float64(a.heads.Q*a.heads.Size)
}

// globalCalls adds the call of attention that a layer makes for the global tokens of a row.
func (a *attention) globalCalls(calls []autograd.Call, length int) []autograd.Call {
	if a.global == nil {
		return calls
	}
	n := min(a.global.N, length)
	return append(calls, autograd.Call{Tokens: n, Heads: a.heads, Mask: device.Mask{Len: n, Slopes: a.slopes}})
}

// globalCaches allocates the caches of global tokens, one for each layer; nil if no layer has any.
func (m *Decoder) globalCaches(p precision.Policy, mem *tensor.Arena) []device.Cache {
	if !m.Config.hasGlobalTokens() {
		return nil
	}
	list := make([]device.Cache, len(m.blocks))
	for i, b := range m.blocks {
		if x := b.attention; x.global != nil {
			list[i] = device.Cache{KV: mem.New(p.Activation, x.global.N, 2*x.heads.KV*x.heads.Size),
				Reach: (*device.Layout)(nil).Reach()}
		}
	}
	return list
}
