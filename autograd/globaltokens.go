package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// GlobalTokens are Longformer's global tokens, the first N of every row, with separate projections (Beltagy et al.
// 2020, arXiv 2004.05150, §3.1): their queries see keys and values of these projections, and the results replace those
// of the shared projections. Other tokens see them through the shared projections, as in the paper's code.
//
//	q, k, v = h·Wᵀ            of the first N tokens of a row
//	y_i = Σ_j≤i softmax_j(q_i·k_j/√E)·v_j    i < N
type GlobalTokens struct {
	N            int
	Weight       *Param       // [(H+2K)·E, D]
	QNorm, KNorm *Param       // gains of QK-norm, nil for none
	Normed       device.Heads // that it sees
	Eps          float64

	Heads    device.Heads
	Cos, Sin *tensor.Tensor // rotary tables; nil for none
	Slopes   []float64      // [H], for ALiBi; nil for none
}

// in returns how many of the first tokens of a row of length tokens are global.
func (g *GlobalTokens) in(length int) int { return min(g.N, length) }

// heads returns the queries, keys and values [M, (H+2K)·E] of global tokens h [M, D], not rotated.
func (g *GlobalTokens) heads(t *Tape, h *Var) *Var {
	qkv := t.Linear(h, g.Weight)
	if g.QNorm != nil {
		qkv = t.QKNorm(qkv, g.QNorm, g.KNorm, g.Normed, g.Eps)
	}
	return qkv
}

// GlobalHeads returns the queries, keys and values [R·n, (H+2K)·E] of the n global tokens of each of the R rows of h
// [N, D].
func (t *Tape) GlobalHeads(h *Var, g *GlobalTokens, seq *Sequence) *Var {
	return g.heads(t, t.firstTokens(h, seq.Mask.Len, g.in(seq.Mask.Len)))
}

// firstTokens returns a copy [R·n, D] of the first n tokens of each row of length tokens of h [N, D]: R = N/length.
func (t *Tape) firstTokens(h *Var, length, n int) *Var {
	in := t.value(h)
	rows := in.Rows() / length
	out := t.wrap(t.kept(t.Types.Activation, rows*n, in.Cols()))
	t.Device.CopyRuns(&out.Value, in, device.Runs{
		Count: rows, Rows: n, Cols: in.Cols(), To: device.Place{Step: n}, From: device.Place{Step: length},
	})
	if t.grad {
		node := t.node()
		node.backward, node.x, node.out, node.mask.Len = firstTokensBack, h, out, length
	}
	return out
}

func firstTokensBack(t *Tape, n *node) {
	d, _ := t.gradOf(n.out)
	g, add := t.gradOf(n.x)
	if !add {
		t.Device.Zero(g)
	}
	rows := g.Rows() / n.mask.Len
	first := d.Rows() / rows
	t.Device.CopyRuns(g, d, device.Runs{
		Count: rows, Rows: first, Cols: d.Cols(), To: device.Place{Step: n.mask.Len}, From: device.Place{Step: first},
		Add: true,
	})
}

// GlobalAttention returns y [N, H·E], a result of attention, after it replaces the results of the global tokens of
// each row by those of attention with qkv [R·n, (H+2K)·E] from GlobalHeads. It consumes both.
func (t *Tape) GlobalAttention(y, qkv *Var, g *GlobalTokens, seq *Sequence) *Var {
	in, out := t.consume(qkv), t.wrap(t.consume(y))
	length := seq.Mask.Len
	rows := out.Value.Rows() / length
	n := in.Rows() / rows
	lse := t.keptRef(t.Types.Stat, rows*g.Heads.Q, n)
	refs := t.tensorN
	for row := range rows {
		t.tensorN = refs // the headers of each row are reused
		r := t.globalRow(g, seq, row, n)
		part := t.rows(&in, row*n, (row+1)*n)
		if g.Cos != nil {
			t.Device.RoPE(part, g.Cos, g.Sin, r.pos, g.Heads, false)
		}
		t.Device.Attention(t.rows(&out.Value, row*length, row*length+n), t.rows(lse, row*g.Heads.Q, (row+1)*g.Heads.Q),
			part, g.Heads, r.mask)
	}
	if t.grad {
		node := t.node()
		node.backward, node.x, node.y, node.out, node.seq = globalAttentionBack, y, qkv, out, seq
		node.global, node.saved[0] = g, lse
	}
	return out
}

// globalRow holds the positions [n] and the mask of the first n tokens of a row.
type globalRow struct {
	pos  *tensor.Tensor
	mask device.Mask
}

func (t *Tape) globalRow(g *GlobalTokens, seq *Sequence, row, n int) globalRow {
	first := row * seq.Mask.Len
	m := device.Mask{Len: n, Slopes: g.Slopes}
	if seq.Mask.Start != nil {
		m.Start = t.rows(seq.Mask.Start, first, first+n)
	}
	return globalRow{t.rows(&seq.Pos, first, first+n), m}
}

// globalAttentionBack passes the gradient of the global tokens to their own queries, keys and values. It then zeroes
// that gradient for the attention that made y, whose results for these tokens were replaced.
func globalAttentionBack(t *Tape, node *node) {
	g, seq, h := node.global, node.seq, node.global.Heads
	d, _ := t.gradOf(node.out)
	dqkv := t.onlyGrad(node.y)
	length := seq.Mask.Len
	rows := d.Rows() / length
	n := dqkv.Rows() / rows
	refs := t.tensorN
	for row := range rows {
		t.tensorN = refs
		r := t.globalRow(g, seq, row, n)
		dout, part := t.rows(d, row*length, row*length+n), t.rows(dqkv, row*n, (row+1)*n)
		t.Device.AttentionGrad(part, dout, t.rows(&node.out.Value, row*length, row*length+n),
			t.rows(node.saved[0], row*h.Q, (row+1)*h.Q), t.rows(&node.y.Value, row*n, (row+1)*n), h, r.mask)
		if g.Cos != nil {
			t.Device.RoPE(part, g.Cos, g.Sin, r.pos, h, true)
		}
		t.Device.Zero(dout)
	}
	node.x.grad = node.out.grad
}

// GlobalCached computes the results of global tokens from h [N, D] and writes them over those in y [N, H·E], for a
// batch that continues sequences in layer number layer of their caches. It is not recorded.
func (t *Tape) GlobalCached(y, h *Var, g *GlobalTokens, seq *Sequence, layer int) {
	from, refs := 0, t.tensorN
	for _, c := range seq.Caches {
		t.tensorN = refs // the headers of each sequence are reused
		if n := min(g.N-c.First, c.Tokens); n > 0 {
			mark := t.temp.Mark()
			qkv := g.heads(t, t.wrap(h.Value.Slice(from, from+n)))
			if g.Cos != nil {
				t.Device.RoPE(&qkv.Value, g.Cos, g.Sin, t.rows(&seq.Pos, from, from+n), g.Heads, false)
			}
			t.Device.AttentionCached(t.rows(&y.Value, from, from+n), &qkv.Value, &c.Global[layer], c.First, g.Heads,
				device.Mask{Slopes: g.Slopes})
			t.temp.Release(mark)
		}
		from += c.Tokens
	}
}
