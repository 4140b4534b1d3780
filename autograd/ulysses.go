package autograd

import (
	"fmt"

	"anneal/device"
	"anneal/tensor"
)

// Ulysses (Jacobs et al. 2023, arXiv 2309.14509) is context parallelism by heads: during attention each of C ranks has
// all tokens of H/C query heads, instead of N/C tokens of all heads.
//
//	forward    qkv [N/C, (H+2K)·E] → [N, (H+2K)·E/C]; attention; out [N, H·E/C] → [N/C, H·E]
//	backward   out and dout as qkv went, dqkv as out came back
//	sent       (C−1)/C of (5H+4K)·E numbers for every token of its own and layer, by every rank
//	kept       what one rank keeps of N/C tokens: the heads' tokens lie where the tokens' heads lay
//
// Attention sees whole rows, so every pattern works, with documents, ALiBi and linear attention, and the forward bits
// are those of one rank. C must divide H. K must be a multiple of C or divide it; in the second case several ranks
// have the same key-value head. For more ranks, use ring attention (ring.go).

// A headShare holds the heads that a rank computes, and the numbers of the first ones.
type headShare struct {
	device.Heads
	q, kv int
}

// CheckUlysses returns an error if the heads cannot be divided among that number of ranks.
func CheckUlysses(h device.Heads, ranks int) error {
	if h.Q%ranks != 0 || h.KV%ranks != 0 && ranks%h.KV != 0 {
		return fmt.Errorf("%d query heads and %d key-value heads cannot be dealt to %d ranks",
			h.Q, h.KV, ranks)
	}
	return nil
}

// shareOf returns the heads of a rank. It panics unless CheckUlysses passes.
func shareOf(h device.Heads, rank, ranks int) headShare {
	if err := CheckUlysses(h, ranks); err != nil {
		panic("autograd: " + err.Error())
	}
	s := headShare{Heads: h, q: rank * h.Q / ranks, kv: rank * h.KV / ranks}
	s.Q, s.KV = h.Q/ranks, max(h.KV/ranks, 1)
	return s
}

// UlyssesAttention is Attention for this rank's tokens of rows that Context's ranks share: qkv [N/C, (H+2K)·E], which
// it consumes, result [N/C, H·E]. mask is that of the whole rows.
func (t *Tape) UlyssesAttention(qkv *Var, heads device.Heads, mask device.Mask) *Var {
	n, whole := t.ulysses(qkv, heads, mask)
	s := shareOf(heads, t.Context.Rank(), t.Context.Size())
	mark := t.temp.Mark()
	out := t.ref(t.temp.New(t.Types.Activation, whole.Rows(), s.Q*s.Size))
	t.Device.Attention(out, n.saved[0], whole, s.Heads, n.mask)
	t.collect(&n.out.Value, out, t.cut(queries, heads), t.zigzag(mask))
	t.temp.Release(mark)
	if n.backward = ulyssesBack; t.grad {
		*t.node() = n
	}
	return n.out
}

// UlyssesLinearAttention does the same for LinearAttention; gates [N/C, K] or [N/C, 2K] or nil.
func (t *Tape) UlyssesLinearAttention(qkv, gates *Var, heads device.Heads, mask device.Mask) *Var {
	n, whole := t.ulysses(qkv, heads, mask)
	s := shareOf(heads, t.Context.Rank(), t.Context.Size())
	if n.y = gates; gates != nil {
		in := t.value(gates)
		n.saved[2] = t.keptRef(t.Types.Stat, whole.Rows(), s.GateCols())
		t.spread(n.saved[2], in, t.cut(gating, heads), t.zigzag(mask))
	}
	mark := t.temp.Mark()
	out := t.ref(t.temp.New(t.Types.Activation, whole.Rows(), s.Q*s.Size))
	t.Device.LinearAttention(out, n.saved[0], whole, n.saved[2], s.Heads, n.mask)
	t.collect(&n.out.Value, out, t.cut(queries, heads), t.zigzag(mask))
	t.temp.Release(mark)
	if n.backward = ulyssesLinearBack; t.grad {
		*t.node() = n
	}
	return n.out
}

// ulysses begins a node: it spreads qkv, and allocates the statistics [H/C, N] and the result [N/C, H·E].
func (t *Tape) ulysses(qkv *Var, heads device.Heads, mask device.Mask) (n node, whole *tensor.Tensor) {
	z, own := t.zigzag(mask), qkv.Value.Rows()
	rows, s := own*z.Ranks, shareOf(heads, z.Rank, z.Ranks)
	n = node{x: qkv, heads: heads, mask: t.maskOf(mask, s)}
	n.out = t.wrap(t.kept(t.Types.Activation, own, heads.Q*heads.Size))
	n.saved[0] = t.keptRef(t.Types.Stat, s.Q, rows)
	all := t.ref(t.consume(qkv))
	if fits(heads, z.Ranks) {
		whole = t.ref(all.Reshape(rows, s.Cols()))
	} else {
		whole = t.keptRef(all.DType(), rows, s.Cols())
	}
	n.saved[1] = whole
	t.spread(whole, all, t.cut(projection, heads), z)
	return n, whole
}

func ulyssesBack(t *Tape, n *node) {
	g := t.onlyGrad(n.x)
	mark := t.temp.Mark()
	s, whole := t.wholeGrad(n, g)
	inner := t.temp.Mark()
	dout, out := t.bringBack(n, s)
	t.Device.AttentionGrad(whole, dout, out, n.saved[0], n.saved[1], s.Heads, n.mask)
	t.temp.Release(inner)
	t.collect(g, whole, t.cut(projection, n.heads), t.zigzag(n.mask))
	t.temp.Release(mark)
}

func ulyssesLinearBack(t *Tape, n *node) {
	var dgates, share *tensor.Tensor
	if n.y != nil {
		dgates = t.onlyGrad(n.y)
	}
	g := t.onlyGrad(n.x)
	mark := t.temp.Mark()
	s, whole := t.wholeGrad(n, g)
	if dgates != nil {
		share = t.ref(t.temp.New(dgates.DType(), whole.Rows(), s.GateCols()))
	}
	inner := t.temp.Mark()
	dout, out := t.bringBack(n, s)
	t.Device.LinearAttentionGrad(whole, share, dout, out, n.saved[0], n.saved[1], n.saved[2], s.Heads, n.mask)
	t.temp.Release(inner)
	t.collect(g, whole, t.cut(projection, n.heads), t.zigzag(n.mask))
	if dgates != nil {
		t.collect(dgates, share, t.cut(gating, n.heads), t.zigzag(n.mask))
	}
	t.temp.Release(mark)
}

// wholeGrad returns this rank's heads and memory for the gradient of their qkv [N, (H+2K)/C·E]: the memory of g if the
// gradient fits.
func (t *Tape) wholeGrad(n *node, g *tensor.Tensor) (s headShare, whole *tensor.Tensor) {
	rows, ranks := n.saved[1].Rows(), t.Context.Size()
	s = shareOf(n.heads, t.Context.Rank(), ranks)
	if fits(n.heads, ranks) {
		return s, t.ref(g.Reshape(rows, s.Cols()))
	}
	return s, t.ref(t.temp.New(g.DType(), rows, s.Cols()))
}

// bringBack gets the result of attention [N, H/C·E], which was sent to the ranks of its tokens, back, and its
// gradient.
func (t *Tape) bringBack(n *node, s headShare) (dout, out *tensor.Tensor) {
	z, rows, c := t.zigzag(n.mask), n.saved[1].Rows(), t.cut(queries, n.heads)
	d, _ := t.gradOf(n.out)
	dout = t.ref(t.temp.New(d.DType(), rows, s.Q*s.Size))
	out = t.ref(t.temp.New(n.out.Value.DType(), rows, s.Q*s.Size))
	t.spread(dout, d, c, z)
	t.spread(out, &n.out.Value, c, z)
	return dout, out
}

// fits reports whether a rank's heads of all tokens fit in the memory of all heads of its tokens. They need more if
// several ranks have the same key-value head.
func fits(h device.Heads, ranks int) bool { return h.KV%ranks == 0 }

// zigzag returns how the rows of a mask are divided among Context's ranks.
func (t *Tape) zigzag(m device.Mask) Zigzag { return Zigzag{t.Context.Rank(), t.Context.Size(), m.Len} }

// cut returns how the heads are divided among Context's ranks.
func (t *Tape) cut(what matrix, h device.Heads) cut { return cut{what, h, t.Context.Size()} }

// maskOf returns the mask of a rank's heads. The tape keeps their layouts.
func (t *Tape) maskOf(m device.Mask, s headShare) device.Mask {
	whole := m.Layout
	if m = s.mask(m); m.Layout == whole {
		return m
	}
	if l := t.shares[whole]; l != nil {
		m.Layout = l
		return m
	}
	if t.shares == nil {
		t.shares = map[*device.Layout]*device.Layout{}
	}
	t.shares[whole] = m.Layout
	return m
}

// mask returns the part of a mask for these heads.
func (s headShare) mask(m device.Mask) device.Mask {
	if m.Slopes != nil {
		m.Slopes = m.Slopes[s.q : s.q+s.Q]
	}
	if l := m.Layout; l != nil && l.Head != nil {
		m.Layout = &device.Layout{Len: l.Len, Graphs: l.Graphs, Head: l.Head[s.q : s.q+s.Q]}
	}
	return m
}
