package autograd

import "anneal/tensor"

// Tensor parallelism (Shoeybi et al. 2019, arXiv 1909.08053): every peer has a part of each layer's weights. A branch
// reads the stream through weights cut by their outputs (heads, hidden units) and writes to it through weights cut by
// their inputs, so that its results are terms of a sum over the peers. Nothing is exchanged in between.
//
// Sequence parallelism (Korthikanti et al. 2022, arXiv 2205.05198): the stream is cut too, each peer has the rows of
// N/t tokens. Then norms, dropout and additions are done once, not by every peer, and what they keep takes a share of
// the memory. With t peers:
//
//	                forward                            backward
//	Gather          rows of all peers come together    terms are summed, each peer keeps its rows
//	sumPeers        terms are summed, each keeps ...   rows of all peers come together
//
// Without it the stream is whole on every peer: Gather does nothing forward, and sums go to all.
//
// Rows are sent in the format in which products read them, terms in Types.Stream. Sums add the terms in the order of
// the peers, so all peers compute the same bits. Gathered rows are not kept: backward gathers them again.
//
// Each exchange moves (t−1)/t·N·D numbers from each peer: for a branch two forward and three backward.

// A Cut says which part of a weight [O, I] this rank has.
type Cut uint8

// The cuts.
const (
	Whole   Cut = iota // all of it
	Outputs            // some rows; products compute some columns of the result
	Inputs             // some columns; products compute terms of the result
)

// meeting holds the lists of exchanges, so that no exchange allocates.
type meeting struct {
	out, room []tensor.Tensor
	terms     []*tensor.Tensor
	ids, host []byte // numbers in host memory
	numbers   []float64
}

// peers returns the number of ranks that layers are cut among.
func (t *Tape) peers() int {
	if t.Tensor == nil {
		return 1
	}
	return t.Tensor.Size()
}

// cuts reports whether the rows of the stream are divided among peers.
func (t *Tape) cuts() bool { return t.Sequence && t.peers() > 1 }

// adds reports whether products with w are terms of a sum over peers.
func (t *Tape) adds(w *Param) bool { return w.Cut == Inputs && t.peers() > 1 }

// streamRows returns how many of n tokens this rank's stream holds.
func (t *Tape) streamRows(n int) int {
	if !t.cuts() {
		return n
	}
	if n%t.peers() != 0 {
		panic("autograd: sequence parallelism needs a number of tokens that is a multiple of the number of peers")
	}
	return n / t.peers()
}

// ofPeer returns the rows of x [N, D] that peer r has with sequence parallelism.
func (t *Tape) ofPeer(x *tensor.Tensor, r int) tensor.Tensor {
	n := x.Dim(0) / t.peers()
	return x.Slice(r*n, (r+1)*n)
}

// ofStream returns the rows of x, which has one row per token, that belong to this rank's stream.
func (t *Tape) ofStream(x *tensor.Tensor) *tensor.Tensor {
	if !t.cuts() {
		return x
	}
	return t.ref(t.ofPeer(x, t.Tensor.Rank()))
}

// meet empties the lists of an exchange.
func (t *Tape) meet() *meeting {
	m := &t.meeting
	m.out, m.room, m.terms = m.out[:0], m.room[:0], m.terms[:0]
	return m
}

// gatherRows writes the rows of all peers to dst [N, D]. mine [N/t, D] holds this peer's rows in the same dtype, and
// may already be at its place in dst.
func (t *Tape) gatherRows(dst, mine *tensor.Tensor) {
	m, me := t.meet(), t.Tensor.Rank()
	for r := range t.peers() {
		m.out, m.room = append(m.out, *mine), append(m.room, t.ofPeer(dst, r))
	}
	if own := &m.room[me]; own.Pointer() != mine.Pointer() {
		t.Device.Copy(own, mine)
	}
	in := t.Tensor.Exchange(m.out, m.room)
	for r := range in {
		if r != me && t.Tensor.InPlace() {
			t.Device.Copy(&m.room[r], &in[r])
		}
	}
	t.Tensor.Release()
}

// sumRows writes the sum of all peers' terms to dst [N/t, D], or adds it. Each peer receives its own rows of term [N,
// D]. dst may be this peer's rows of term.
func (t *Tape) sumRows(dst, term *tensor.Tensor, add bool) {
	m, mark := t.meet(), t.temp.Mark()
	for r := range t.peers() {
		m.out = append(m.out, t.ofPeer(term, r))
		m.room = append(m.room, t.roomFrom(r, dst.DType(), dst.Shape()...))
	}
	t.fold(dst, t.Tensor.Exchange(m.out, m.room), add)
	t.Tensor.Release()
	t.temp.Release(mark)
}

// fold writes the sum of the peers' terms to dst, or adds it.
func (t *Tape) fold(dst *tensor.Tensor, terms []tensor.Tensor, add bool) {
	m := &t.meeting
	m.terms = m.terms[:0]
	for r := range terms {
		m.terms = append(m.terms, &terms[r])
	}
	t.Device.Fold(dst, m.terms, add)
}

// sumPeers writes the sum of all peers' terms to dst, this rank's rows of the stream, or adds it. It overwrites term
// [N, D], which may be dst if the stream is whole.
func (t *Tape) sumPeers(dst, term *tensor.Tensor, add bool) {
	if t.cuts() {
		t.sumRows(dst, term, add)
		return
	}
	mine := t.ref(t.ofPeer(term, t.Tensor.Rank()))
	t.sumRows(mine, term, false)
	t.gatherRows(term, mine)
	switch {
	case add:
		t.Device.Add(dst, term)
	case dst != term:
		t.Device.Copy(dst, term)
	}
}

// summed returns the sum over peers of y [N, D], a product with w: this rank's rows of the stream, in y's memory. If w
// is not cut by its inputs, the result is y itself.
func (t *Tape) summed(y *tensor.Tensor, w *Param) *tensor.Tensor {
	if !t.adds(w) {
		return y
	}
	mine := t.ofStream(y)
	t.sumPeers(mine, y, false)
	return mine
}

// Gather returns the rows of all peers, for products with weights that are cut by their outputs: h is the normalised
// stream, temporary, [N/t, D] or, if the stream is whole, [N, D]; result [N, D], temporary. Without peers it returns
// h.
func (t *Tape) Gather(h *Var) *Var {
	switch {
	case t.peers() == 1:
		return h
	case !t.Sequence:
		if h.wide = true; t.grad {
			n := t.node()
			n.backward, n.out = sumWholeBack, h
		}
		return h
	}
	in := t.value(h)
	h.wide = true
	out := t.wrap(t.temp.New(in.DType(), in.Rows()*t.peers(), in.Cols()))
	out.wide = true
	t.gatherRows(&out.Value, in)
	if t.grad {
		n := t.node()
		n.backward, n.recompute, n.x, n.out = gatherBack, gatherAgain, h, out
		out.producer = n
	}
	return out
}

func gatherAgain(t *Tape, n *node) { t.gatherRows(&n.out.Value, t.value(n.x)) }

func gatherBack(t *Tape, n *node) {
	g, add := t.gradOf(n.x)
	t.sumRows(g, &n.out.grad, add)
}

func sumWholeBack(t *Tape, n *node) { t.sumPeers(&n.out.grad, &n.out.grad, false) }

// Sum returns the sum over peers of y [N, D]: this rank's rows of the stream. y is in the format of the stream; y and
// the result live until the end of the block. Without peers it returns y.
func (t *Tape) Sum(y *Var) *Var {
	if t.peers() == 1 {
		return y
	}
	in := t.value(y)
	out := t.wrap(t.temp.New(in.DType(), t.streamRows(in.Rows()), in.Cols()))
	out.inBlock = true
	t.sumPeers(&out.Value, in, false)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.out = sumBack, y, out
	}
	return out
}

func sumBack(t *Tape, n *node) {
	g := t.onlyGrad(n.x)
	if t.cuts() {
		t.gatherRows(g, &n.out.grad)
	} else {
		t.Device.Copy(g, &n.out.grad)
	}
}

// gathered returns dy with the rows of all peers, in temporary memory; dy has this rank's rows of the stream.
func (t *Tape) gathered(dy *tensor.Tensor) *tensor.Tensor {
	if !t.cuts() {
		return dy
	}
	all := t.ref(t.temp.New(dy.DType(), dy.Rows()*t.peers(), dy.Cols()))
	t.gatherRows(all, dy)
	return all
}

// biasOf returns the bias that a product with w adds. In a sum over peers only the first peer adds it.
func (t *Tape) biasOf(w *Param) *tensor.Tensor {
	if w.Bias == nil || t.adds(w) && t.Tensor.Rank() > 0 {
		return nil
	}
	return &w.Bias.Value
}

// roomFrom returns temporary memory for a tensor from peer r, if receiving it needs memory.
func (t *Tape) roomFrom(r int, dtype tensor.DType, shape ...int) tensor.Tensor {
	if r == t.Tensor.Rank() || t.Tensor.InPlace() {
		return tensor.Tensor{}
	}
	return t.temp.New(dtype, shape...)
}
