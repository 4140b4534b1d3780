package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
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
// A sequence that outgrows the context is shortened in steps (inSight), because removing its first token moves all
// positions and the cache must be recomputed.

// maxChunk is the largest number of tokens in one forward pass.
const maxChunk = 256

// inSight returns the end of a sequence that a model with this context sees: the whole sequence if it fits, else
// between three quarters of the context and the full context. It depends only on the length.
func inSight(ids []int32, context int) []int32 {
	over := len(ids) - context
	if over <= 0 {
		return ids
	}
	step := max(context/4, 1)
	return ids[(over+step-1)/step*step:]
}

// remembers reports whether a cache gives the same logits as no cache. With FP8 scales from the current tensor, the
// numbers of a token depend on all others in the batch, including later ones, so they cannot be kept.
func (m *Decoder) remembers(p precision.Policy) bool { return p.FP8 == nil || p.FP8.Delayed }

// roundable returns the matrices of which a generator with a cache keeps rounded copies: 2 more bytes per weight, and
// half the bytes to read per token. FP8 layers quantise their weights each time.
func (m *Decoder) roundable(p precision.Policy, cached bool) (list []*nn.Param) {
	if !cached || p.Operand != tensor.BF16 || p.Weight != tensor.F32 {
		return nil
	}
	for _, w := range m.params {
		if (w.Role == nn.Matrix || w == m.head) && w.FP8 == nil {
			list = append(list, w)
		}
	}
	return list
}

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
	return c
}

// extend runs the tokens of ids from first on through the model and returns the logits [1, V] of the last one if
// logits is set. Earlier tokens must be in the cache; without a cache first is 0. b must hold the number of new
// tokens. If only memory is measured, ids is nil.
func (m *Decoder) extend(t *autograd.Tape, b *Batch, ids []int32, first int, c *autograd.Cache,
	logits bool) *tensor.Tensor {
	if ids != nil {
		copy(b.Host.Tokens, ids[first:])
		b.SetPositions(false)
		for i := range b.Host.Pos {
			b.Host.Pos[i] += int32(first)
		}
		b.Send(t.Device)
	}
	if c != nil {
		c.First = first
		b.Seq.Cache, b.Seq.Mask = c, device.Mask{}
	}
	if !logits {
		m.Forward(t, &b.Tokens, &b.Seq)
		return nil
	}
	return m.Logits(t, b, b.T-1, b.T)
}

// kept makes ids the tokens of the cache and returns how many of them it already holds. The last token is never among
// these, because its logits are needed.
func (g *Generator) kept(ids []int32) int {
	n := 0
	for n < min(len(g.seen), len(ids)-1) && g.seen[n] == ids[n] {
		n++
	}
	for i := range g.cache.Layers {
		if !g.cache.Layers[i].Holds(g.written, n) { // a ring no longer holds them
			n = 0
		}
	}
	if n == 0 {
		g.written = 0
	}
	g.seen = append(g.seen[:n], ids[n:]...)
	g.written = max(g.written, len(g.seen))
	return n
}

// measureGeneration returns the exact footprint of a Generator, by running its code on a device that does not
// compute.
func measureGeneration(c Config, p precision.Policy, cached bool) Footprint {
	keep, temp := tensor.NewMeasure("activations"), tensor.NewMeasure("scratch")
	batch, kv := tensor.NewMeasure("batch"), tensor.NewMeasure("keys and values")
	m := Outline(c, p)
	tokens := c.Context
	var cache *autograd.Cache
	if cached {
		tokens, cache = min(tokens, maxChunk), m.newCache(p, kv)
	}
	t := autograd.NewTape(device.Null{}, p.Types(), keep, temp)
	t.Reset(false)
	m.extend(t, NewBatch(batch, p, 1, tokens), nil, 0, cache, true)
	return Footprint{Keep: keep.Peak(), Temp: temp.Peak(), Batch: batch.Peak(), Cache: kv.Peak()}
}
