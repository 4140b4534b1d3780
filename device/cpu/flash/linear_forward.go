package flash

import (
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// linearForward is one call of Linear.Forward. A task is one row of the batch and one key-value head with its group
// of query heads, which share the state.
type linearForward[T vec.Float] struct {
	l *linear[T]
	shape
	sizes
	out, qkv    matrix[T]
	norm, gates []T
}

func (l *linear[T]) forward(p *pool.Pool, s shape, out, norm, qkv, gates *tensor.Tensor) {
	z := l.sizes(&s)
	var c carver[T]
	newLinearTile(&c, z)
	l.reserve(p.Threads(), c.used)
	l.fwd = linearForward[T]{
		l: l, shape: s, sizes: z, out: matrixOf[T](out), qkv: matrixOf[T](qkv), norm: wide[T](norm),
	}
	if gates != nil {
		l.fwd.gates = wide[T](gates)
	}
	p.Run(s.rows*s.KV, &l.fwd)
	l.fwd = linearForward[T]{}
}

// linearTile is a worker's scratch memory of the forward pass; e, v and m are those of sizes, n is the width of a
// panel.
type linearTile[T vec.Float] struct {
	state []T // [m, e]: T
	k, q  []T // [C, e]: features
	slope []T // [C, e]: slopes of features, used by backward only
	v     []T // [C, v]
	qt    []T // [e, n]: a panel of Q̂ᵀ
	s     []T // [C, n]: scores
	ot    []T // [v, n]: a panel of outputs and denominators, transposed
	decay decays[T]
}

func newLinearTile[T vec.Float](c *carver[T], z sizes) linearTile[T] {
	return linearTile[T]{
		state: c.take(z.m * z.e), k: c.take(linearChunk * z.e), q: c.take(linearChunk * z.e),
		slope: c.take(linearChunk * z.e), v: c.take(linearChunk * z.v), qt: c.take(z.e * z.panel),
		s: c.take(linearChunk * z.panel), ot: c.take(z.v * z.panel), decay: newDecays(c),
	}
}

// Do computes one task.
func (j *linearForward[T]) Do(worker, task int) {
	t := newLinearTile(&carver[T]{buf: j.l.scratch[worker]}, j.sizes)
	row, kv := task/j.KV, task%j.KV
	for from := 0; from < j.length; {
		c := j.l.after(&j.shape, row, from)
		j.chunk(&t, c, row, kv)
		from = c.to
	}
}

// chunk computes the outputs of one chunk and adds its keys and values to the state.
func (j *linearForward[T]) chunk(t *linearTile[T], c span, row, kv int) {
	l, z := j.l, j.sizes
	at, n := row*j.length+c.from, c.to-c.from
	if c.first {
		clear(t.state)
	}
	l.features(t.k, t.slope, &j.qkv, at, j.keyCol(kv), n, z, j.Size)
	l.values(t.v, &j.qkv, at, j.valueCol(kv), n, z, j.Size)
	l.begin(&t.decay, j.gates, at, kv, n, &j.shape)
	for g := range j.group {
		head := kv*j.group + g
		l.features(t.q, t.slope, &j.qkv, at, j.queryCol(head), n, z, j.Size)
		for p0 := 0; p0 < n; p0 += z.panel {
			j.panel(t, c, p0, min(p0+z.panel, n))
			j.finish(t, head, at+p0, 0, min(z.panel, n-p0))
		}
	}
	if !c.last {
		l.pass(t, n, z)
	}
}

// pass adds the n keys and values of a chunk to the state.
func (l *linear[T]) pass(t *linearTile[T], n int, z sizes) {
	if t.decay.gated() {
		l.vec.Scale(t.state, t.state, t.decay.whole(n))
		l.scaleRows(t.k, z.e, n, z.e, t.decay.after)
	}
	l.absorb(t.state, t.v, t.k, n, z)
}

// panel computes [O n]ᵀ of queries p0…p1 of the chunk.
func (j *linearForward[T]) panel(t *linearTile[T], c span, p0, p1 int) {
	l, z := j.l, j.sizes
	q := t.q[p0*z.e:]
	l.transpose(t.qt, q, z.e, z.e)
	l.mul(t.s, z.panel, t.k, z.e, 1, t.qt, z.panel, roundUp(p1, l.tileM), j.Size, false)
	l.weigh(t.s, &t.decay, p0, p1, z)
	if !c.first {
		if t.decay.gated() {
			l.scaleRows(q, z.e, p1-p0, z.e, t.decay.upTo[p0:])
			l.transpose(t.qt, q, z.e, z.e)
		}
		l.mul(t.ot, z.panel, t.state, z.e, 1, t.qt, z.panel, z.m, j.Size, false)
	}
	l.mul(t.ot, z.panel, t.v, 1, z.v, t.s, z.panel, z.m, p1, !c.first)
}

// finish divides the outputs of a panel's queries first…n and stores them, and their denominators if requested. The
// panel starts at row at.
func (j *linearForward[T]) finish(t *linearTile[T], head, at, first, n int) {
	l, z := j.l, j.sizes
	sums := t.ot[j.Size*z.panel:][:n]
	for i, sum := range sums {
		sums[i] = sum + linearEps
	}
	if j.norm != nil {
		copy(j.norm[head*j.tokens+at:], sums)
	}
	for i, sum := range sums {
		sums[i] = 1 / sum
	}
	for c := 0; c < j.Size; c += z.panel { // one square of outputs at a time
		l.transpose(t.s, t.ot[c*z.panel:], z.panel, z.panel)
		l.scaleRows(t.s, z.panel, n, z.panel, sums)
		l.write(&j.out, at+first, head*j.Size+c, n-first, min(z.panel, j.Size-c), t.s[first*z.panel:], z.panel, 1)
	}
}
