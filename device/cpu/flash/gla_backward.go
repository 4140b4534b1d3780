package flash

import (
	"math"

	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// glaBackward is one call of Linear.Backward with gates per dimension: a sweep forward with M for the gradient of
// queries, then one in reverse with G, the gradient of the state after a chunk. With dO those of outputs before their
// norm and dP = dO·Vᵀ up to the diagonal,
//
//	dQ̃ = dO·Mᵀ + dP·K̃          dQ = dQ̃∘γ/√E
//	dK  = (dPᵀ·Q̃)/γ + (V·Gᵀ)∘a   dV = Pᵀ·dO + K'·G
//	G   = diag(γ_last)·G + Q̃ᵀ·dO
//
// The first sweep stores q∘dq in the gradient of the gates; the second turns it, for each dimension, into
//
//	∂/∂ log α_t = Σ_{s ≥ t, in the document} (q_s·dq_s − k_s·dk_s)
type glaBackward[T vec.Float] struct {
	glaJob[T]
	dqkv, dout, out, dgates matrix[T]
	norm                    []T
}

// glaGrad is a worker's scratch memory of the backward pass.
type glaGrad[T vec.Float] struct {
	glaTile[T]
	do, dx   []T // [16, e]: dO; dQ̃, or dP·Q̃
	dk, dv   []T // [16, e]
	dots     []T // [16, e]: q∘dq, k∘dk
	sum      []T // [e]: of later tokens
	sideways []T // [e, panel]: a panel of Mᵀ or Gᵀ
}

func newGLAGrad[T vec.Float](c *carver[T], z sizes) glaGrad[T] {
	rows := func() []T { return c.take(glaChunk * z.e) }
	return glaGrad[T]{glaTile: newGLATile(c, z), do: rows(), dx: rows(), dk: rows(), dv: rows(), dots: rows(),
		sum: c.take(z.e), sideways: c.take(z.e * z.panel)}
}

func (l *linear[T]) glaBackward(p *pool.Pool, s shape, dqkv, dgates, dout, out, norm, qkv, gates *tensor.Tensor) {
	var c carver[T]
	newGLAGrad(&c, l.sizes(&s))
	l.reserve(p.Threads(), c.used)
	l.glaBwd = glaBackward[T]{norm: wide[T](norm), dgates: matrixOf[T](dgates),
		dqkv: matrixOf[T](dqkv), dout: matrixOf[T](dout), out: matrixOf[T](out),
		glaJob: l.newGLAJob(s, matrixOf[T](qkv), matrixOf[T](gates))}
	p.Run(s.rows*s.KV, &l.glaBwd)
	l.glaBwd = glaBackward[T]{}
}

// Do computes one task.
func (j *glaBackward[T]) Do(worker, task int) {
	t := newGLAGrad(&carver[T]{buf: j.l.scratch[worker]}, j.sizes)
	row, kv := task/j.KV, task%j.KV
	for from := 0; from < j.length; {
		c := j.l.after(&j.shape, row, from)
		c.pieces(false, func(p span) { j.queries(&t, p, row, kv) })
		from = c.to
	}
	for to := j.length; to > 0; {
		c := j.l.before(&j.shape, row, to)
		c.pieces(true, func(p span) { j.keys(&t, p, row, kv) })
		to = c.from
	}
}

// begin reads a chunk's keys, values and gates.
func (j *glaBackward[T]) begin(t *glaGrad[T], c span, row, kv int) (at, n int) {
	at, n = row*j.length+c.from, c.to-c.from
	j.load(&t.glaTile, &j.qkv, &j.gates, at, j.keyCol(kv), j.valueCol(kv), kv, n)
	return at, n
}

// gradients computes dO of a head.
func (j *glaBackward[T]) gradients(t *glaGrad[T], head, at, n int) {
	j.l.read(t.do, j.e, &j.dout, at, head*j.Size, n, j.Size)
	j.l.read(t.o, j.e, &j.out, at, head*j.Size, n, j.Size)
	j.l.normHeadsGrad(t.do, t.o, t.f, j.norm[head*j.tokens+at:], n, j.e, j.Size)
}

// timesTurned computes dst = a·mᵀ of n rows.
func (j *glaBackward[T]) timesTurned(t *glaGrad[T], dst, a, m []T, n int) {
	for c := 0; c < j.e; c += j.panel {
		j.l.transpose(t.sideways, m[c*j.e:], j.e, j.e)
		j.l.mul(dst[c:], j.e, a, j.e, 1, t.sideways, j.panel, roundUp(n, j.l.tileM), j.Size, false)
	}
}

// queries computes dQ of one chunk and adds its keys and values to the state.
func (j *glaBackward[T]) queries(t *glaGrad[T], c span, row, kv int) {
	l, e := j.l, j.e
	if c.first {
		clear(t.state)
	}
	at, n := j.begin(t, c, row, kv)
	j.turn(&t.glaTile, t.v)
	clear(t.dots)
	for g := range j.group {
		head := kv*j.group + g
		j.query(&t.glaTile, at, head, 0, n)
		j.gradients(t, head, at, n)
		j.scores(&t.glaTile, t.do, 0, n)
		if !c.first {
			j.timesTurned(t, t.dx, t.do, t.state, n)
		}
		j.times(t.dx, t.p, j.wide, 1, t.inner, 0, n, n, !c.first)
		dx := t.dx[:n*e]
		l.vec.MulAdd(t.dots[:n*e], dx, t.q)
		l.vec.Mul(dx, dx, t.upTo)
		l.write(&j.dqkv, at, j.queryCol(head), n, j.Size, dx, e, T(1/math.Sqrt(float64(j.Size))))
	}
	l.write(&j.dgates, at, kv*j.Size, n, j.Size, t.dots, e, 1)
	if !c.last {
		j.pass(&t.glaTile, n)
	}
}

// keys computes dK, dV and the gradients of the gates of one chunk, and adds its queries to G.
func (j *glaBackward[T]) keys(t *glaGrad[T], c span, row, kv int) {
	l, e := j.l, j.e
	at, n := j.begin(t, c, row, kv)
	size := n * e
	if c.last {
		clear(t.state)
		clear(t.sum)
		clear(t.dv)
		clear(t.dk)
	} else {
		j.times(t.dv, t.outer, e, 1, t.state, 0, n, j.Size, false)
		j.timesTurned(t, t.dk, t.v, t.state, n)
		l.vec.Mul(t.dk[:size], t.dk, t.aft)
		l.scaleRows(t.state, e, e, e, t.upTo[size-e:])
	}
	clear(t.dots)
	for g := range j.group {
		head := kv*j.group + g
		j.query(&t.glaTile, at, head, 0, n)
		j.gradients(t, head, at, n)
		j.turn(&t.glaTile, t.inner)
		j.scores(&t.glaTile, t.q, 0, n)
		j.times(t.dv, t.p, 1, j.wide, t.do, 0, n, n, true)
		j.turn(&t.glaTile, t.v)
		j.scores(&t.glaTile, t.do, 0, n)
		j.times(t.dots, t.p, 1, j.wide, t.q, 0, n, n, true)
		j.times(t.state, t.q, 1, e, t.do, 0, e, n, true)
	}
	l.vec.MulAdd(t.dk[:size], t.dots, t.inverse)
	l.write(&j.dqkv, at, j.keyCol(kv), n, j.Size, t.dk, e, 1)
	l.write(&j.dqkv, at, j.valueCol(kv), n, j.Size, t.dv, e, 1)
	j.logits(t, c, at, kv, n)
}

// logits turns q∘dq, stored in the gradients of the gates, into these gradients. A document's first gates have nothing
// to decay.
func (j *glaBackward[T]) logits(t *glaGrad[T], c span, at, kv, n int) {
	l, e := j.l, j.e
	l.read(t.dots, e, &j.dgates, at, kv*j.Size, n, j.Size)
	for i := n - 1; i >= 0; i-- {
		row := t.dots[i*e : (i+1)*e]
		l.vec.Mul(t.dx[:e], t.k[i*e:], t.dk[i*e:])
		l.vec.Axpy(row, t.dx, -1)
		l.vec.Add(t.sum, row)
		for c, x := range t.power[i*e : (i+1)*e] {
			row[c] = t.sum[c] * (x / (1 + x) / 16) // ∂ log α/∂ logit
		}
	}
	if c.first {
		clear(t.dots[:e])
	}
	l.write(&j.dgates, at, kv*j.Size, n, j.Size, t.dots, e, 1)
}
