package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Ring attention (Liu et al. 2023, arXiv 2310.01889): context parallelism in which the queries of a rank stay and the
// keys and values of all ranks pass by, one rank's at each of C−1 hops. The results of the hops are merged by their
// log-sum-exps, so no rank ever holds the keys of a whole row. Chunks are dealt out in a zigzag (Zigzag): every hop
// then costs every rank the same, two chunks of queries against one of keys or one against two, and pairs hidden by
// causality are not computed.
//
//	hop h      keys and values of rank c−h come, straight from their owner
//	forward    (out, lse) ← merge of (out, lse) and attention of a frame of these keys and the queries that see them
//	backward   the same frames, with the final out and lse; dK, dV go home after each hop
//	sent       forward 2K·E numbers for every token: of half of its tokens to ranks after it, of all to those
//	           before; backward twice as many, on average
//	memory     of attention 1/C: nothing of a hop outlasts it
//
// Gradients of keys and values are sent in the format of activations and summed in Types.Stat. Every softmax pattern
// works, with documents and ALiBi. Linear attention has a state instead of keys and uses Ulysses (ulysses.go). Ulysses
// is also better if there are enough heads for the ranks: with many ranks it sends less, and it computes in one call.

// A ring is one call of ring attention, forward or backward.
type ring struct {
	*Tape
	*Parts
	heads device.Heads
	mask  device.Mask
	qkv   *tensor.Tensor // [N/C, (H+2K)·E], of this rank
	rows  int            // of the batch
}

func (t *Tape) ring(qkv *tensor.Tensor, heads device.Heads, mask device.Mask, p *Parts) *ring {
	return &ring{Tape: t, Parts: p, heads: heads, mask: mask, qkv: qkv, rows: qkv.Rows() / (2 * p.Chunk())}
}

// RingAttention is Attention for this rank's tokens of rows that Context's ranks share: qkv [N/C, (H+2K)·E], result
// [N/C, H·E]. mask is that of the whole rows; seq.Parts must be made for it.
func (t *Tape) RingAttention(qkv *Var, heads device.Heads, mask device.Mask, seq *Sequence) *Var {
	in := t.value(qkv)
	lse := t.keptRef(t.Types.Stat, heads.Q, in.Rows())
	out := t.wrap(t.kept(t.Types.Activation, in.Rows(), heads.Q*heads.Size))
	mark := t.temp.Mark()
	sum := t.wide(&out.Value)
	r := t.ring(in, heads, mask, seq.Parts)
	for hop := range r.Ranks {
		first := hop == 0
		r.visit(hop, func(f *frame, qkv *tensor.Tensor) {
			r.attend(f, qkv, sum, lse, first)
			first = false
		})
	}
	t.narrow(&out.Value, sum)
	t.temp.Release(mark)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.out, n.heads, n.mask, n.seq = ringBack, qkv, out, heads, mask, seq
		n.saved[0] = lse
	}
	return out
}

// wide returns memory for a sum: x, or a temporary tensor of its shape in Types.Stat if x is narrower.
func (t *Tape) wide(x *tensor.Tensor) *tensor.Tensor {
	if x.DType() == t.Types.Stat {
		return x
	}
	return t.ref(t.temp.New(t.Types.Stat, x.Shape()...))
}

// narrow rounds a sum from wide to x.
func (t *Tape) narrow(x, sum *tensor.Tensor) {
	if sum != x {
		t.Device.Copy(x, sum)
	}
}

// visit gets the keys and values of the rank of a hop and calls attend for each frame in which a query sees a key,
// with qkv of the frame [rows·F, (H+2K)·E]. While attend runs, nothing else of the hop uses memory, and peers may
// continue.
func (r *ring) visit(hop int, attend func(f *frame, qkv *tensor.Tensor)) {
	frames := r.hops[hop]
	if r.whole(frames[0]) {
		attend(frames[0], r.qkv)
		return
	}
	mark := r.temp.Mark()
	var built [2]*tensor.Tensor
	for i, f := range frames {
		if _, sees := f.layout(r.mask.Layout); sees {
			built[i] = r.ref(r.temp.New(r.qkv.DType(), r.rows*f.len(), r.qkv.Cols()))
		}
	}
	inner := r.temp.Mark()
	came := r.fetch(hop)
	for i, f := range frames {
		if built[i] != nil {
			r.build(built[i], f, came)
		}
	}
	if hop > 0 {
		r.Context.Release()
	}
	r.temp.Release(inner)
	for i, f := range frames {
		if built[i] != nil {
			attend(f, built[i])
		}
	}
	r.temp.Release(mark)
}

// fetch receives the keys and values of the rank of a hop, [tokens, 2K·E], chunk by chunk: those of its first chunk or
// of both. It sends this rank's to the rank that needs them in this hop.
func (r *ring) fetch(hop int) *tensor.Tensor {
	from, to := (r.Rank-hop+r.Ranks)%r.Ranks, (r.Rank+hop)%r.Ranks
	cols := r.qkv.Cols() - r.heads.Q*r.heads.Size
	mine := r.ref(r.temp.New(r.qkv.DType(), r.seen(r.Rank, to), cols))
	for i := range mine.Rows() / (r.rows * r.Chunk()) {
		r.move(mine, r.qkv, r.packed(i), r.own(i, r.heads.Q*r.heads.Size), cols, false)
	}
	if hop == 0 {
		return mine
	}
	out, room := r.parcels(r.Ranks)
	out[to] = *mine
	if !r.Context.InPlace() {
		room[from] = r.temp.New(mine.DType(), r.seen(from, r.Rank), cols)
	}
	return r.ref(r.Context.Exchange(out, room)[from])
}

// build fills qkv of a frame from this rank's queries and the keys and values received. The rest is zero, because
// devices multiply whole tiles and hide invisible keys by a factor of zero.
func (r *ring) build(qkv *tensor.Tensor, f *frame, came *tensor.Tensor) {
	r.Device.Zero(qkv)
	split := r.heads.Q * r.heads.Size
	for _, chunk := range f.keys {
		r.move(qkv, came, r.in(f, chunk, split), r.packed(r.index(chunk)), came.Cols(), false)
	}
	for _, chunk := range f.queries {
		r.move(qkv, r.qkv, r.in(f, chunk, 0), r.own(r.index(chunk), 0), split, false)
	}
}

// maskOf returns the mask of a frame.
func (r *ring) maskOf(f *frame) device.Mask {
	l, _ := f.layout(r.mask.Layout)
	return device.Mask{Len: f.len(), Start: &f.start, Layout: l, Slopes: r.mask.Slopes}
}

// attend merges attention of a frame into out [N/C, H·E] and lse [H, N/C], which hold nothing yet if first is set.
func (r *ring) attend(f *frame, qkv, out, lse *tensor.Tensor, first bool) {
	rows, h := qkv.Rows(), r.heads
	if r.whole(f) && out.DType() == r.Types.Activation {
		r.Device.Attention(out, lse, qkv, h, r.maskOf(f))
		return
	}
	part := r.ref(r.temp.New(r.Types.Activation, rows, h.Q*h.Size))
	partLSE := r.ref(r.temp.New(r.Types.Stat, h.Q, rows))
	r.Device.Attention(part, partLSE, qkv, h, r.maskOf(f))
	for _, q := range f.queries {
		r.Device.MergeAttention(out, lse, part, partLSE, h, device.Merge{
			Count: r.rows, Rows: r.Chunk(), To: r.own(r.index(q), 0), From: r.in(f, q, 0),
			Shift: f.shift(r.mask.Slopes, q, 1), Fresh: first,
		})
	}
}

func ringBack(t *Tape, n *node) {
	dout, _ := t.gradOf(n.out)
	g := t.onlyGrad(n.x)
	mark := t.temp.Mark()
	sum := t.wide(g)
	r := t.ring(t.value(n.x), n.heads, n.mask, n.seq.Parts)
	if !r.whole(r.hops[0][0]) {
		t.Device.Zero(sum)
	}
	for hop := range r.Ranks {
		inner := t.temp.Mark()
		var home *tensor.Tensor
		if hop > 0 {
			from := (r.Rank - hop + r.Ranks) % r.Ranks
			home = t.ref(t.temp.New(g.DType(), r.seen(from, r.Rank), g.Cols()-n.out.Value.Cols()))
			t.Device.Zero(home)
		}
		r.visit(hop, func(f *frame, qkv *tensor.Tensor) {
			r.attendGrad(f, qkv, dout, &n.out.Value, n.saved[0], sum, home)
		})
		if hop > 0 {
			r.bring(hop, home, sum)
		}
		t.temp.Release(inner)
	}
	t.narrow(g, sum)
	t.temp.Release(mark)
}

// attendGrad adds the gradients of a frame's queries to sum [N/C, (H+2K)·E]. It adds those of its keys and values to
// sum if they are this rank's; else to home, packed like the keys and values received.
func (r *ring) attendGrad(f *frame, qkv, dout, out, lse, sum, home *tensor.Tensor) {
	rows, h, split := qkv.Rows(), r.heads, r.heads.Q*r.heads.Size
	if r.whole(f) {
		d := sum
		if sum.DType() != qkv.DType() {
			d = r.ref(r.temp.New(qkv.DType(), qkv.Shape()...))
		}
		r.Device.AttentionGrad(d, dout, out, lse, qkv, h, r.maskOf(f))
		r.narrow(sum, d)
		return
	}
	part, partLSE := r.ref(r.temp.New(out.DType(), rows, split)), r.ref(r.temp.New(lse.DType(), h.Q, rows))
	dpart, d := r.ref(r.temp.New(dout.DType(), rows, split)), r.ref(r.temp.New(qkv.DType(), rows, qkv.Cols()))
	for _, x := range []*tensor.Tensor{part, partLSE, dpart} {
		r.Device.Zero(x) // as in build
	}
	for _, q := range f.queries {
		r.Device.MergeAttention(part, partLSE, out, lse, h, device.Merge{
			Count: r.rows, Rows: r.Chunk(), To: r.in(f, q, 0), From: r.own(r.index(q), 0),
			Shift: f.shift(r.mask.Slopes, q, -1), Fresh: true,
		})
		r.move(dpart, dout, r.in(f, q, 0), r.own(r.index(q), 0), split, false)
	}
	r.Device.AttentionGrad(d, dpart, part, partLSE, qkv, h, r.maskOf(f))
	for _, q := range f.queries {
		r.move(sum, d, r.own(r.index(q), 0), r.in(f, q, 0), split, true)
	}
	for _, k := range f.keys {
		if home == nil {
			r.move(sum, d, r.own(r.index(k), split), r.in(f, k, split), qkv.Cols()-split, true)
		} else {
			r.move(home, d, r.packed(r.index(k)), r.in(f, k, split), home.Cols(), false)
		}
	}
}

// bring sends the gradients of a hop's keys and values to their owner, and adds the gradients received for this rank's
// keys and values to sum.
func (r *ring) bring(hop int, home, sum *tensor.Tensor) {
	from, to := (r.Rank-hop+r.Ranks)%r.Ranks, (r.Rank+hop)%r.Ranks
	out, room := r.parcels(r.Ranks)
	out[from] = *home
	tokens := r.seen(r.Rank, to)
	if !r.Context.InPlace() {
		room[to] = r.temp.New(home.DType(), tokens, home.Cols())
	}
	came := r.ref(r.Context.Exchange(out, room)[to])
	for i := range tokens / (r.rows * r.Chunk()) {
		r.move(sum, came, r.own(i, r.heads.Q*r.heads.Size), r.packed(i), home.Cols(), true)
	}
	r.Context.Release()
}
