package model

import (
	"slices"

	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
)

// attention is the body of a block's first branch, between its norm and its output projection.
type attention struct {
	wqkv         *nn.Param // [(H+2K)·E, D], or [H·E+R+P, D] with a latent
	wo           *nn.Param // [D, H·E]: the projection of the branch
	qnorm, knorm *nn.Param // [E]; nil without QK-norm

	values, valueWeight *nn.Param // [V, K·E], [1]: value embeddings; nil without them
	latent              *latent   // of keys and values; nil if they are read from the stream
	sinks               *nn.Param // [H]: logits in the softmax's denominator; nil without them
	gate                *nn.Param // [G, D]: gates of linear attention; nil without them
	gateIn              *nn.Param // [16, D], if gate is [G, 16]; nil else

	taps   *nn.Param              // [(H+2K)·E, k] of short convolutions; nil without them
	global *autograd.GlobalTokens // with projections of their own; nil for none

	heads  device.Heads
	rope   *rope     // nil without rotary positions
	slopes []float64 // [H], for ALiBi; nil without it
	seen   *pattern  // which keys each query sees
	linear bool      // linear attention, with a state instead of keys
	eps    float64
	layer  int // number of the layer
}

func newAttention(b *builder) *attention {
	c := b.config
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	a := &attention{heads: b.part.heads(c.heads()), seen: b.seen[b.layer], eps: c.NormEps, layer: b.layer}
	b.setPositions(a)
	if c.KVLoraRank > 0 {
		newLatent(b, a)
	} else {
		parts := []nn.Part{{Name: "q", Rows: q}, {Name: "k", Rows: kv}, {Name: "v", Rows: kv}}
		a.wqkv = b.columnParallel("attention.qkv", b.width, c.HeadDim, parts...)
		b.sumKeyValues(a, a.wqkv)
		b.global(a, slices.Clone(parts)...)
	}
	a.wo = b.rowParallel("attention.out", q, b.width, c.HeadDim)
	if c.QKNorm {
		a.qnorm = b.gain("attention.q_norm", c.qkNormSize(), b.head)
		a.knorm = b.gain("attention.k_norm", c.qkNormSize(), b.head)
		b.part.sumAll(a.qnorm)
		b.part.sumAll(a.knorm)
		if g := a.global; g != nil {
			g.QNorm, g.KNorm, g.Normed = &a.qnorm.Param, &a.knorm.Param, a.normed()
		}
	}
	l, linear := c.linear(b.layer)
	if c.AttentionSinks && !linear {
		a.sinks = b.sinks()
	}
	b.shortConv(a)
	if a.linear, a.heads.Rule = linear, l.Rule; l.HasGates() {
		b.gates(a, l)
	}
	return a
}

// sinks creates the logits [H] of attention sinks, which start at 0: a key with the score 0.
func (b *builder) sinks() *nn.Param {
	p := b.scalars("attention.sinks", make([]float64, b.config.Heads)...)
	b.part.cutRows(p, 1, []nn.Part{{Rows: b.config.Heads}})
	return p
}

// sumKeyValues marks the rows of a key-value head that several ranks have: the gradient of these rows is a sum over
// those ranks. w is the newest weight of a's queries, keys and values.
func (b *builder) sumKeyValues(a *attention, w *nn.Param) {
	sharers, first := b.part.sharers(b.config.KVHeads), a.heads.Q*a.heads.Size
	b.part.sumRows(w, first, sharers)
	if w.Bias != nil {
		b.part.sumRows(b.params[len(b.params)-1], first, sharers)
	}
}

// Forward returns the result of all heads for the normalised stream h [N, D]: [N, H·E].
func (a *attention) Forward(t *autograd.Tape, h *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	var global *autograd.Var
	if a.global != nil && seq.Caches == nil {
		global = t.GlobalHeads(h, a.global, seq) // [R·G, (H+2K)·E]
	}
	qkv := t.Linear(h, &a.wqkv.Param)
	if a.latent != nil {
		qkv = a.latent.heads(t, qkv, a.heads, a.eps)
	}
	y := a.attend(t, h, qkv, seq) // [N, H·E]
	switch {
	case global != nil:
		y = t.GlobalAttention(y, global, a.global, seq)
	case a.global != nil:
		t.GlobalCached(y, h, a.global, seq, a.layer)
	}
	return y
}

// normed returns the heads that QK-norm normalises: those of attention, or one head as wide as all of them.
func (a *attention) normed() device.Heads {
	h, size := a.heads, a.qnorm.Shape[0]
	if size == h.Size {
		return h
	}
	return device.Heads{Q: 1, KV: 1, Size: size}
}

// attend is Forward from queries, keys and values qkv [N, (H+2K)·E], wherever they come from; h [N, D] is the
// normalised stream.
func (a *attention) attend(t *autograd.Tape, h, qkv *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	qkv = a.convolve(t, qkv, seq)
	if a.values != nil {
		qkv = t.AddValues(qkv, &a.values.Param, &a.valueWeight.Param, seq.IDs, a.heads)
	}
	if a.qnorm != nil {
		qkv = t.QKNorm(qkv, &a.qnorm.Param, &a.knorm.Param, a.normed(), a.eps)
	}
	if a.rope != nil {
		qkv = t.RoPE(qkv, &a.rope.Cos, &a.rope.Sin, a.heads, seq)
	}
	if a.linear {
		return a.attendLinearly(t, h, qkv, seq)
	}
	heads := a.heads
	if t.Types.FP8Heads {
		qkv, heads = t.QuantizeHeads(qkv, heads)
	}
	return a.attendTo(t, qkv, heads, seq) // [N, H·E]
}
