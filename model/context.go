package model

import (
	"fmt"

	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// Context parallelism: ranks divide the tokens of every row among them. Only attention is affected. A rank's batch
// holds its own tokens and their places in the whole rows (autograd.Parts).

// CheckContext returns a *CutError if n ranks cannot divide the tokens of the model's rows, where tensor parallelism
// divides the heads among tensors ranks.
func (c Config) CheckContext(n, tensors int, ring bool) error {
	if n <= 1 {
		return nil
	}
	if c.Context%(2*n) != 0 {
		return &CutError{"model.context", fmt.Sprintf("model.context = %d is not a multiple of 2·parallel.context = "+
			"%d: every rank has two chunks of a row", c.Context, 2*n),
			fmt.Sprintf("model.context = %d", (c.Context/(2*n)+1)*2*n)}
	}
	if c.AttentionSinks {
		return &CutError{"model.attention_sinks", "model.attention_sinks = true does not work with parallel.context: " +
			"what ranks merge has one sink each", "model.attention_sinks = false, or parallel.context = 1"}
	}
	if c.hasGlobalTokens() {
		return &CutError{"model.longformer_global_projections", "model.longformer_global_projections = true does not " +
			"work with parallel.context: the first tokens of a row are on one rank",
			"model.longformer_global_projections = false, or parallel.context = 1"}
	}
	if c.ShortConv > 0 && c.hasLinear() {
		return &CutError{"model.short_conv", fmt.Sprintf("model.short_conv = %d does not work with parallel.context: "+
			"the tokens before a chunk are on another rank", c.ShortConv),
			"model.short_conv = 0, or parallel.context = 1"}
	}
	if !ring || c.hasLinear() {
		heads := Part{Tensors: max(tensors, 1)}.heads(c.heads())
		if err := autograd.CheckUlysses(heads, n); err != nil {
			return c.noHeads(err, ring)
		}
	}
	return nil
}

// noHeads returns the error for heads that cannot be divided among the ranks.
func (c Config) noHeads(err error, ring bool) *CutError {
	if ring { // a layer of linear attention needs it
		return &CutError{"parallel.context", "linear attention exchanges heads, also under parallel.attention = " +
			"ring, but " + err.Error(), "fewer ranks, or another pattern than linear"}
	}
	return &CutError{"parallel.attention", "parallel.attention = ulysses exchanges heads, but " + err.Error(),
		"parallel.attention = ring"}
}

// Branches reports whether a batch of this model may have branches (autograd.Sequence). Every layer must use softmax
// attention with keys that depend only on earlier tokens.
func (c Config) Branches() bool { return !c.hasLinear() && !c.hasGlobalTokens() }

// hasLinear reports whether some layer has a state instead of keys.
func (c Config) hasLinear() bool {
	for i := range c.Layers {
		if _, linear := c.linear(i); linear {
			return true
		}
	}
	return false
}

// alibi reports whether some layer has ALiBi.
func (c Config) alibi() bool {
	for i := range c.Layers {
		if c.positions(i) == "alibi" {
			return true
		}
	}
	return false
}

// NewBatchPart allocates a batch for this rank's tokens of the given number of whole rows, for a model with
// configuration c.
func NewBatchPart(a *tensor.Arena, p precision.Policy, c Config, rows int, z autograd.Zigzag, ring bool) *Batch {
	b := NewBatch(a, p, rows, z.Len/z.Ranks)
	b.Seq.Parts = autograd.NewParts(a, z, rows, ring, c.alibi())
	b.Seq.Runs = z.Runs(rows)
	return b
}

// Take fills the host's elements of a batch part from those of the whole rows.
func (b *Batch) Take(whole HostBatch) {
	z := b.Seq.Parts.Zigzag
	z.Cut(b.Host.Tokens, whole.Tokens)
	z.Cut(b.Host.Targets, whole.Targets)
	z.Cut(b.Host.Pos, whole.Pos)
	z.CutStarts(b.Host.Start, whole.Start)
	b.Seq.Parts.Fill(whole.Start)
}

// attendTo computes attention of rotated qkv [N, (H+2K)·E]: [N, H·E], never [T, T]. If the batch holds parts of rows,
// ranks exchange what they need to attend to whole rows.
func (a *attention) attendTo(t *autograd.Tape, qkv *autograd.Var, heads device.Heads,
	seq *autograd.Sequence) *autograd.Var {
	mask := seq.Mask
	if seq.Parts != nil {
		mask = seq.Parts.Mask
	}
	mask.Slopes, mask.Layout = a.slopes, a.seen.layout
	if a.sinks != nil {
		mask.Sinks = &a.sinks.Value
	}
	switch {
	case len(seq.Branches) > 0:
		out := t.Attention(qkv, heads, mask)
		t.AttentionBranches(out, qkv, heads, mask, seq.Branches)
		return out
	case seq.Caches != nil:
		return t.AttentionCached(qkv, heads, mask, seq.Caches, a.layer)
	case a.sinks != nil:
		return t.AttentionWithSinks(qkv, &a.sinks.Param, heads, mask)
	case seq.Parts == nil:
		return t.Attention(qkv, heads, mask)
	case t.Ring:
		return t.RingAttention(qkv, heads, mask, seq)
	}
	return t.UlyssesAttention(qkv, heads, mask)
}
