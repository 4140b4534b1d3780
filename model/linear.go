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

// linear returns a layer's linear attention, and whether it has one. linear.go in package attention has the formulas.
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

// gatedLinear reports whether some layer has linear attention whose state decays.
func (c Config) gatedLinear() bool {
	return slices.ContainsFunc(c.Attention, func(p sparse.Pattern) bool {
		l, linear := p.(sparse.Linear)
		return linear && l.Gated
	})
}

// mostGates returns the pattern of linear attention with the most gates; nil if no layer has gates or short
// convolutions.
func (c Config) mostGates() (most sparse.Pattern) {
	top := -1
	for _, p := range c.Attention {
		l, linear := p.(sparse.Linear)
		if !linear || !l.HasGates() && c.ShortConv == 0 {
			continue
		}
		n := 0
		if l.HasGates() {
			heads := c.heads()
			heads.Rule = l.Rule
			n = heads.GateCols()
		}
		if n > top {
			most, top = l, n
		}
	}
	return most
}

// gateRank is the rank of the logits of GLA's gates.
const gateRank = 16

// gates creates the weights [G, D] of a layer's gates, and the bias [G] of decay gates: G = K, or 2K for the gated
// delta rule. GLA has G = K·E with weights of two factors, [16, D] and [G, 16]. They use no FP8 operands: for so few
// columns FP8 would save no time.
func (b *builder) gates(a *attention, l sparse.Linear) {
	c := b.config
	heads := c.heads()
	heads.Rule = l.Rule
	rows, in := heads.GateCols(), nn.Growth{In: b.width, Out: b.width, Depth: 1}
	if l.Rule == device.VectorGateRule {
		a.gateIn = b.add("attention.gate.in", nn.Matrix, nn.Growth{In: b.width, Out: 1, Depth: 1}, gateRank, c.Dim)
		a.gateIn.FP8Products = false
		a.gateIn.Std = c.std(inner, gateRank, c.Dim, a.gateIn.Growth)
		a.gate = b.gateRows(l, rows, gateRank, nn.Growth{In: 1, Out: b.width, Depth: 1})
		return
	}
	a.gate = b.gateRows(l, rows, c.Dim, in)
}

// gateRows creates the weights [rows, cols] of gates, with their bias.
func (b *builder) gateRows(l sparse.Linear, rows, cols int, g nn.Growth) *nn.Param {
	c := b.config
	w := b.add("attention.gate", nn.Matrix, g, rows, cols)
	w.FP8Products = false
	w.Std = c.std(inner, rows, cols, w.Growth)
	all := []*nn.Param{w}
	if l.Gated {
		bias := b.add("attention.gate.bias", nn.Bias, nn.Growth{In: 1, Out: b.width, Depth: 1}, rows)
		if bias.Start = make([]float64, rows); l.Rule != device.VectorGateRule {
			bias.Start = decays(rows, rows/c.KVHeads)
		}
		w.Bias = &bias.Param
		all = append(all, bias)
	}
	for _, p := range all {
		b.part.cutRows(p, rows/c.KVHeads, []nn.Part{{Rows: rows}})
		b.part.sumRows(p, 0, b.part.sharers(c.KVHeads))
	}
	return w
}

// decays returns the initial biases of gates. The last gate of head h is its decay gate: the sigmoid of its bias is 1
// − 2⁻⁵⁻ʰ.
func decays(rows, width int) []float64 {
	start := make([]float64, rows)
	for h := range rows / width {
		start[h*width+width-1] = math.Log(math.Exp2(float64(5+h%8)) - 1)
	}
	return start
}

// attendLinearly completes attend for a layer of linear attention.
func (a *attention) attendLinearly(t *autograd.Tape, h, qkv *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	var gates *autograd.Var
	if a.gate != nil {
		if a.gateIn != nil {
			h = t.Linear(h, &a.gateIn.Param) // [N, 16]
		}
		gates = t.Gates(h, &a.gate.Param) // [N, G]
	}
	if seq.Caches != nil {
		return t.LinearAttentionCached(qkv, gates, a.heads, seq.Caches, a.layer)
	}
	if seq.Parts != nil {
		return t.UlyssesLinearAttention(qkv, gates, a.heads, seq.Parts.Mask)
	}
	return t.LinearAttention(qkv, gates, a.heads, seq.Mask) // [N, H·E]  its state is [E, E]
}

// linearCache allocates the cache of a layer of linear attention for a sequence.
func (a *attention) linearCache(p precision.Policy, mem *tensor.Arena) device.Cache {
	var c device.Cache
	states := a.heads.Size + 1 // rows for each head
	switch a.heads.Rule {
	case device.DeltaRule, device.GatedDeltaRule:
		states = a.heads.Size + 2*device.LinearChunk
	case device.VectorGateRule:
		states = a.heads.Size * device.LinearChunk / device.VectorGateChunk
		fallthrough
	default:
		c.KV = mem.New(p.Activation, device.LinearChunk, 2*a.heads.KV*a.heads.Size)
	}
	c.State = mem.New(p.Master, a.heads.KV*states, a.heads.Size)
	if a.gate != nil {
		c.Gates = mem.New(p.Master, device.LinearChunk, a.heads.GateCols())
	}
	return c
}

// linearFLOPs counts the multiplications of linear attention for a token of a sequence of n: scores and values inside
// chunks, of which it counts the causal half, and reading and writing the state. Query heads read it, key-value heads
// write it.
func (a *attention) linearFLOPs(n int) float64 {
	e := float64(a.heads.Size)
	return 2 * (float64(a.linearReaders())*e*(float64(min(n, a.linearChunk()))+e) + float64(a.heads.KV)*e*e)
}

// linearReaders returns the number of heads that read keys and the state: query heads, and with a delta rule also key
// heads, which first read what the state holds for their keys.
func (a *attention) linearReaders() int {
	if r := a.heads.Rule; r == device.DeltaRule || r == device.GatedDeltaRule {
		return a.heads.Q + a.heads.KV
	}
	return a.heads.Q
}

// linearChunk returns the number of tokens that join the state at a time.
func (a *attention) linearChunk() int {
	if a.heads.Rule == device.VectorGateRule {
		return device.VectorGateChunk
	}
	return device.LinearChunk
}

// linearBatchFLOPs counts the multiplications of linear attention for rows of t tokens: scores and values inside the
// chunks of a document, reads of the state by all chunks but the first, and writes by all but the last. start [N] is
// the position in its row at which each token's document begins.
func (a *attention) linearBatchFLOPs(start []int32, t int) float64 {
	chunk := a.linearChunk()
	var pairs, reads, writes int // of a query head and a key; of the state by a token
	for i := range start {
		at := i%t - int(start[i]) // position in the document
		pairs += at%chunk + 1
		if at >= chunk {
			reads++
		}
		end := i + chunk - at%chunk // of the chunk, if the document reaches that far
		if i/t == end/t && start[end] == start[i] {
			writes++
		}
	}
	e := float64(a.heads.Size)
	readers := a.linearReaders()
	scores, state := float64(readers*pairs), float64(readers*reads+a.heads.KV*writes)
	return 4*e*scores + 2*e*e*state
}
