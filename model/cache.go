package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// Generation with a cache. The keys and values of a token depend only on earlier tokens, so they are computed once
// and kept; only new tokens go through the model. Every kernel computes each row in the same order as in a large
// batch, and attention uses the same tiles of keys, so the logits equal those without a cache, bit for bit.
//
//	memory of a layer   2K·E activations (BF16: 4K·E bytes) for each of the T tokens of the context; if no query of
//	                    the layer sees more than W tokens, for W+63 tokens, in a ring; with linear attention for 64
//	                    tokens, plus a state of K·E·(E+1) numbers
//	time of a token     one read of the weights and one of the cache
//
// A sequence that outgrows the context is shortened in steps (InSight), because removing its first token moves all
// positions and the cache must be recomputed.

// maxChunk is the largest number of tokens in one forward pass.
const maxChunk = 256

// InSight returns the end of a sequence that a model with this context sees: the whole sequence if it fits, else
// between three quarters of the context and the full context. It depends only on the length.
func InSight(ids []int32, context int) []int32 {
	over := len(ids) - context
	if over <= 0 {
		return ids
	}
	step := max(context/4, 1)
	return ids[(over+step-1)/step*step:]
}

// remembers reports whether a cache gives the same logits as no cache. With FP8 scales from the current tensor, the
// numbers of a token depend on all others in the batch, including later ones, so they cannot be kept.
func (m *Decoder) remembers(p precision.Policy) bool { return p.FP8 == nil || !p.FP8.Current() }

// newCache allocates an empty cache for sequences of up to the context.
func (m *Decoder) newCache(p precision.Policy, a *tensor.Arena) *autograd.Cache {
	c := &autograd.Cache{}
	for _, b := range m.blocks {
		x := b.attention
		if x.linear {
			c.Layers = append(c.Layers, x.linearCache(p, a))
			continue
		}
		reach := x.seen.layout.Reach()
		rows := device.CacheRows(m.Config.Context, reach)
		c.Layers = append(c.Layers, device.Cache{
			KV: a.New(p.Activation, rows, 2*x.heads.KV*x.heads.Size), Reach: reach,
		})
	}
	c.Global, c.Inputs = m.globalCaches(p, a), m.inputCaches(p, a)
	return c
}

// CacheBytes returns the memory of the keys and values of one sequence.
func CacheBytes(c Config, p precision.Policy) int {
	mem := tensor.NewMeasure("keys and values")
	Outline(c, p).newCache(p, mem)
	return mem.Peak()
}

// held lists the tokens of a cache.
type held struct {
	ids     []int32
	written int // positions written since the cache was reset
}

// common returns how many tokens at the start of ids are in the cache c, whose tokens h lists. The last ones, whose
// logits are needed, never count.
func (h *held) common(c *autograd.Cache, ids []int32, last int) int {
	n := 0
	for n < min(len(h.ids), len(ids)-last) && h.ids[n] == ids[n] {
		n++
	}
	if !holds(c, h.written, n) { // a ring no longer holds them
		return 0
	}
	return n
}

// holds reports whether a cache that has received written tokens still holds the state after the first n.
func holds(c *autograd.Cache, written, n int) bool {
	for i := range c.Layers {
		if !c.Layers[i].Holds(written, n) {
			return false
		}
	}
	return true
}

// room returns how many tokens, at most most, may follow the first n so that the cache can still go back to n.
func room(c *autograd.Cache, n, most int) (more int) {
	for more < most && holds(c, n+more+1, n) {
		more++
	}
	return more
}

// keep makes ids the tokens of the cache and returns how many of them it already has. The last ones, whose logits are
// needed, never count.
func (h *held) keep(c *autograd.Cache, ids []int32, last int) int {
	n := h.common(c, ids, last)
	h.cut(n)
	h.extend(ids[n:])
	return n
}

// cut drops all but the first n tokens.
func (h *held) cut(n int) {
	if n == 0 {
		h.written = 0
	}
	h.ids = h.ids[:n]
}

// extend adds tokens.
func (h *held) extend(ids []int32) {
	h.ids = append(h.ids, ids...)
	h.written = max(h.written, len(h.ids))
}
