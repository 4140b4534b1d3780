package model

import (
	"math"

	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// Short convolutions before linear attention (H3, Fu et al. 2022, arXiv 2212.14052; kernel 4 in DeltaNet, Yang et al.
// 2024, arXiv 2406.06484, and Gated DeltaNet, arXiv 2412.06464; an option of GLA in their reference code): queries,
// keys and values are mixed with those of the k−1 tokens before, so that a layer can compare neighbours, which a state
// of fixed size does badly.
//
//	q_i[c] ← silu(Σ_d w[c, k−1−d]·q_(i−d)[c])    d < k, within the document; keys and values alike
//
// w starts like PyTorch's convolutions, with the deviation 1/√(3k), and is trained like a gain. Parameters: k·(H+2K)·E
// a layer. Time: one pass over queries, keys and values. Memory: (H+2K)·E activations per token. In generation a layer
// keeps its inputs of the last 63+k tokens. Default: 0, off; the papers have 4. Not for softmax attention, which finds
// its neighbours by their positions.

// shortConvs returns how many taps the convolutions of a layer have; 0 for none.
func (c Config) shortConvs(layer int) int {
	if _, linear := c.linear(layer); linear {
		return c.ShortConv
	}
	return 0
}

// shortConv declares the taps [(H+2K)·E, k] of a layer of linear attention.
func (b *builder) shortConv(a *attention) {
	c := b.config
	k := c.shortConvs(b.layer)
	if k == 0 {
		return
	}
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	a.taps = b.add("attention.short_conv", nn.Scalar, nn.Growth{In: 1, Out: 1, Depth: 1}, q+2*kv, k)
	a.taps.Std = 1 / math.Sqrt(3*float64(k))
	b.part.cutRows(a.taps, c.HeadDim, []nn.Part{{Rows: q}, {Rows: kv}, {Rows: kv}})
	b.part.sumRows(a.taps, a.heads.Q*a.heads.Size, b.part.sharers(c.KVHeads))
}

// convolve runs the short convolutions of a layer, if it has any, on qkv [N, (H+2K)·E].
func (a *attention) convolve(t *autograd.Tape, qkv *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	switch {
	case a.taps == nil:
		return qkv
	case seq.Caches != nil:
		return t.ShortConvCached(qkv, &a.taps.Param, seq.Caches, a.layer)
	}
	return t.ShortConv(qkv, &a.taps.Param, seq.Mask)
}

// inputCaches allocates, for each layer with short convolutions, memory for their last inputs; nil if none has any.
// They reach as far back as a cache of linear attention.
func (m *Decoder) inputCaches(p precision.Policy, mem *tensor.Arena) []tensor.Tensor {
	if m.Config.ShortConv == 0 || !m.Config.hasLinear() {
		return nil
	}
	list := make([]tensor.Tensor, len(m.blocks))
	for i, b := range m.blocks {
		if taps := b.attention.taps; taps != nil {
			list[i] = mem.New(p.Activation, device.LinearChunk+taps.Shape[1]-1, b.attention.heads.Cols())
		}
	}
	return list
}
