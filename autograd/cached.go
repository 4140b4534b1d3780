package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// A Cache holds the keys, values and states of a sequence's tokens before the batch, for generation.
type Cache struct {
	First  int            // position of its first token in the batch
	Tokens int            // how many of the batch's tokens continue the sequence
	Before int32          // the token before First, unless that is 0
	Layers []device.Cache // one per layer
	// Global has, for each layer, the keys and values of global tokens by separate projections; nil if no layer has
	// them.
	Global []device.Cache
	// Inputs has, for each layer with short convolutions, the inputs [R, (H+2K)·E] of the last tokens; the input at
	// position p is in row p mod R. It is nil if no layer has short convolutions.
	Inputs []tensor.Tensor
}

// AttentionCached is Attention for a batch that continues sequences in layer number layer of their caches. It is not
// recorded.
func (t *Tape) AttentionCached(qkv *Var, heads device.Heads, mask device.Mask, caches []*Cache, layer int) *Var {
	in := t.value(qkv)
	out := t.wrap(t.temp.New(t.Types.Activation, in.Rows(), heads.Q*heads.Size))
	from, refs := 0, t.tensorN
	for _, c := range caches {
		t.tensorN = refs // the headers of each sequence are reused
		to := from + c.Tokens
		t.Device.AttentionCached(t.rows(&out.Value, from, to), t.rows(in, from, to), &c.Layers[layer], c.First, heads,
			mask)
		from = to
	}
	return out
}

// LinearAttentionCached is LinearAttention for a batch that continues sequences in layer number layer of their caches.
// It is not recorded.
func (t *Tape) LinearAttentionCached(qkv, gates *Var, heads device.Heads, caches []*Cache, layer int) *Var {
	in, logits := t.value(qkv), t.optional(gates)
	out := t.wrap(t.temp.New(t.Types.Activation, in.Rows(), heads.Q*heads.Size))
	from, refs := 0, t.tensorN
	for _, c := range caches {
		t.tensorN = refs // the headers of each sequence are reused
		to, part := from+c.Tokens, logits
		if logits != nil {
			part = t.rows(logits, from, to)
		}
		t.Device.LinearAttentionCached(t.rows(&out.Value, from, to), t.rows(in, from, to), part, &c.Layers[layer],
			c.First, heads)
		from = to
	}
	return out
}

// rows returns rows [from, to) of x.
func (t *Tape) rows(x *tensor.Tensor, from, to int) *tensor.Tensor { return t.ref(x.Slice(from, to)) }

// LogitsOf returns the logits [R, V] of the rows of h [N, D] whose numbers are in rows [R] (I32), capped if softcap >
// 0. It is not recorded.
func (t *Tape) LogitsOf(h *Var, head *Param, rows *tensor.Tensor, softcap float64) *tensor.Tensor {
	in := t.value(h)
	z := t.ref(t.keep.New(t.Types.Stat, rows.Len(), head.Value.Dim(0)))
	mark := t.temp.Mark()
	x := t.ref(t.temp.New(in.DType(), rows.Len(), in.Cols())) // [R, D]
	t.Device.TakeRows(x, in, rows, 1)
	t.logits(z, x, head, softcap)
	t.temp.Release(mark)
	return z
}
