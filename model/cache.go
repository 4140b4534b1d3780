package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// Generating with a cache. A token's keys and values are functions of the tokens before it, so that they are made once and
// kept; only the new tokens go through the model. Each row of every kernel is computed as it is among many others, in the same
// order, and attention runs over the same tiles of keys: logits are those without a cache, bit for bit.
//
//	memory of a layer   2K·E activations (BF16: 4K·E bytes) for each of the T tokens of the context; where all queries of the layer
//	                    see W tokens at most, for W+63 of them, in a ring; with linear attention for 64 of them, and a state of K·E·(E+1) numbers
//	time of a token     the weights, read once, and the cache, read once
//
// A sequence that outgrows the context is shortened in steps (inSight), since whenever its first token goes, all positions move and
// the cache is made anew.

// maxChunk is how many tokens at most go through the model at a time.
const maxChunk = 256

// inSight returns the end of a sequence that a model with this context sees: all of it up to the context, else between three quarters
// of the context and all of it. It is a function of the length alone.
func inSight(ids []int32, context int) []int32 {
	over := len(ids) - context
	if over <= 0 {
		return ids
	}
	step := max(context/4, 1)
	return ids[(over+step-1)/step*step:]
}

// remembers reports whether a cache gives the logits that the model has without one. Where FP8 operands are scaled by the tensor
// at hand, a token's numbers depend on all others in the batch, those after it as well: nothing can be kept of them.
func (m *Decoder) remembers(p precision.Policy) bool { return p.FP8 == nil || p.FP8.Delayed }

// roundable returns the matrices of which a generator with a cache keeps copies that are rounded already: 2 bytes a weight more, and
// half the bytes to read for a token. FP8 layers round theirs anew.
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

// newCache lays out an empty cache for sequences of up to the context.
func (m *Decoder) newCache(p precision.Policy, a *tensor.Arena) *autograd.Cache {
	c := &autograd.Cache{}
	for _, b := range m.blocks {
		x := &b.shared().attention
		if x.linear {
			c.Layers = append(c.Layers, x.linearCache(p, a))
			continue
		}
		reach := x.seen.layout.Reach()
		rows := device.CacheRows(m.Config.Context, reach)
		c.Layers = append(c.Layers, device.Cache{KV: a.New(p.Activation, rows, 2*x.heads.KV*x.heads.Size), Reach: reach})
	}
	return c
}

// extend runs the tokens of ids from first on, those before them being in the cache, and returns the logits [1, V] of the last if
// they are wanted. Without a cache first is 0. b holds as many tokens; where memory is only measured, ids is nil.
func (m *Decoder) extend(t *autograd.Tape, b *Batch, ids []int32, first int, c *autograd.Cache, logits bool) *tensor.Tensor {
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

// kept makes ids the tokens in the cache, and returns how many of them are there already. The last is not: its logits are wanted.
func (g *Generator) kept(ids []int32) int {
	n := 0
	for n < min(len(g.seen), len(ids)-1) && g.seen[n] == ids[n] {
		n++
	}
	for i := range g.cache.Layers {
		if !g.cache.Layers[i].Holds(g.written, n) { // a ring has moved on
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

// measureGeneration returns the exact footprint of a Generator, by running its code on a device that computes nothing.
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
