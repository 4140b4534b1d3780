package model

import (
	"math"
	"slices"

	sparse "anneal/attention"
	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// linear returns the linear attention of a layer, if that is its pattern. linear.go in package attention has the
// formulas.
func (c Config) linear(layer int) (l sparse.Linear, ok bool) {
	l, ok = c.Attention.Of(layer).(sparse.Linear)
	return l, ok
}

// HasSoftmax reports whether some layer has attention with a softmax.
func (c Config) HasSoftmax() bool {
	for i := range max(c.Layers, 1) {
		if _, linear := c.linear(i); !linear {
			return true
		}
	}
	return false
}

// gatedLinear reports whether some layer has gated linear attention.
func (c Config) gatedLinear() bool {
	return slices.Contains(c.Attention, sparse.Pattern(sparse.Linear{Gated: true}))
}

// gates creates the weights [K, D] and the bias [K] of a layer's gates. They use no FP8 operands: for K columns FP8
// would save no time.
func (b *builder) gates() *nn.Param {
	c := b.config
	w := b.add("attention.gate", nn.Matrix, nn.Growth{In: b.width, Out: b.width, Depth: 1}, c.KVHeads, c.Dim)
	w.FP8Products = false
	w.Std = c.std(inner, c.KVHeads, c.Dim, w.Growth)
	bias := b.add("attention.gate.bias", nn.Bias, nn.Growth{In: 1, Out: b.width, Depth: 1}, c.KVHeads)
	for h := range c.KVHeads {
		bias.Start = append(bias.Start, math.Log(math.Exp2(float64(5+h%8))-1)) // sigmoid of it is 1 − 2⁻⁵⁻ʰ
	}
	w.Bias = &bias.Param
	for _, p := range []*nn.Param{w, bias} {
		b.part.cutRows(p, 1, []nn.Part{{Rows: c.KVHeads}})
		b.part.sumRows(p, 0, b.part.sharers(c.KVHeads))
	}
	return w
}

// attendLinearly completes attend for a layer of linear attention.
func (a *attention) attendLinearly(t *autograd.Tape, h, qkv *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	var gates *autograd.Var
	if a.gate != nil {
		gates = t.Gates(h, &a.gate.Param) // [N, K]
	}
	if seq.Cache != nil {
		return t.LinearAttentionCached(qkv, gates, a.heads, seq.Cache, a.layer)
	}
	if seq.Parts != nil {
		return t.UlyssesLinearAttention(qkv, gates, a.heads, seq.Parts.Mask)
	}
	return t.LinearAttention(qkv, gates, a.heads, seq.Mask) // [N, H·E]  its state is [E, E]
}

// linearCache allocates the cache of a layer of linear attention for a sequence.
func (a *attention) linearCache(p precision.Policy, mem *tensor.Arena) device.Cache {
	c := device.Cache{
		KV:    mem.New(p.Activation, device.LinearChunk, 2*a.heads.KV*a.heads.Size),
		State: mem.New(p.Master, a.heads.KV*(a.heads.Size+1), a.heads.Size),
	}
	if a.gate != nil {
		c.Gates = mem.New(p.Master, device.LinearChunk, a.heads.KV)
	}
	return c
}

// linearFLOPs counts the multiplications of linear attention for a token of a sequence of n: scores and values inside
// chunks of 64, with the causal half counted, and the state, which query heads read and key-value heads write.
func (a *attention) linearFLOPs(n int) float64 {
	e := float64(a.heads.Size)
	return 2 * (float64(a.heads.Q)*e*(float64(min(n, device.LinearChunk))+e) + float64(a.heads.KV)*e*e)
}

// linearBatchFLOPs counts what linear attention multiplies for rows of t tokens: scores and values inside the chunks
// of a document, the state that all chunks but the first read and all but the last add to. start [N] is where in its
// row each token's document begins.
func (a *attention) linearBatchFLOPs(start []int32, t int) float64 {
	var pairs, reads, writes int // of a query head and a key; of the state by a token
	for i := range start {
		at := i%t - int(start[i]) // position in the document
		pairs += at%device.LinearChunk + 1
		if at >= device.LinearChunk {
			reads++
		}
		end := i + device.LinearChunk - at%device.LinearChunk // of the chunk, if the document is so long
		if i/t == end/t && start[end] == start[i] {
			writes++
		}
	}
	e := float64(a.heads.Size)
	scores, state := float64(a.heads.Q*pairs), float64(a.heads.Q*reads+a.heads.KV*writes)
	return 4*e*scores + 2*e*e*state
}
