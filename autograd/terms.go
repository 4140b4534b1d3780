package autograd

import "anneal/tensor"

// A Term is a gradient that is the sum of terms from peers From … To−1. The gradient of a peer outside this range does
// not change.
type Term struct {
	Grad     tensor.Tensor
	From, To int
}

// SumTerms replaces each gradient by the sum of the peers' terms, in the order of the peers. All peers call it with
// lists of the same gradients, but the range of peers may differ.
func (t *Tape) SumTerms(list []Term) {
	if t.peers() == 1 || len(list) == 0 {
		return
	}
	mark, refs, dtype := t.temp.Mark(), t.tensorN, list[0].Grad.DType()
	size := 0
	for i := range list {
		size += list[i].Grad.Len()
	}
	mine := t.ref(t.temp.New(dtype, size)) // one exchange for all
	for at, i := 0, 0; i < len(list); i++ {
		g := &list[i].Grad
		t.Device.Copy(t.ref(run(mine, at, g.Len(), g)), g)
		at += g.Len()
	}
	m := t.meet()
	for r := range t.peers() {
		m.out, m.room = append(m.out, *mine), append(m.room, t.roomFrom(r, dtype, size))
	}
	in := t.Tensor.Exchange(m.out, m.room)
	for at, i := 0, 0; i < len(list); i++ {
		x := &list[i]
		m.terms = m.terms[:0]
		for r := x.From; r < x.To; r++ {
			m.terms = append(m.terms, t.ref(run(&in[r], at, x.Grad.Len(), &x.Grad)))
		}
		t.Device.Fold(&x.Grad, m.terms, false)
		at += x.Grad.Len()
	}
	t.Tensor.Release()
	t.tensorN = refs
	t.temp.Release(mark)
}

// run returns n elements of x, from element at on, in the shape of another tensor.
func run(x *tensor.Tensor, at, n int, like *tensor.Tensor) tensor.Tensor {
	flat := x.Slice(at, at+n)
	return flat.Reshape(like.Shape()...)
}

// tellPeers sends a number, rounded to Types.Stat, to every peer, and returns the numbers of all peers, valid until
// the next call.
func (t *Tape) tellPeers(x float64) []float64 {
	m, mark, refs := t.meet(), t.temp.Mark(), t.tensorN
	if size := t.Types.Stat.Size(); len(m.host) < size {
		m.host = make([]byte, size)
	}
	host := tensor.View(t.Types.Stat, m.host, 1)
	host.SetFloat64(0, x)
	mine := t.ref(t.temp.New(t.Types.Stat, 1))
	t.Device.Write(mine, host.Raw())
	for r := range t.peers() {
		m.out, m.room = append(m.out, *mine), append(m.room, t.roomFrom(r, t.Types.Stat, 1))
	}
	m.numbers = m.numbers[:0]
	for _, y := range t.Tensor.Exchange(m.out, m.room) {
		t.Device.Read(host.Raw(), &y)
		m.numbers = append(m.numbers, host.Float64(0))
	}
	t.Tensor.Release()
	t.tensorN = refs
	t.temp.Release(mark)
	return m.numbers
}
