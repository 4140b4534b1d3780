package flash

import (
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// deltaBackward is one call of Linear.Backward with a delta rule. A task first goes forward over the chunks and stores
// the state before each, then goes in reverse with G, the gradient of the state after the chunk. With Y = U/β of
// deltaJob.solve and dO that of the outputs before their norm, a chunk gives
//
//	dP  = (dO·Uᵀ) ∘ D                  dQ̂ = γ∘(dO·Mᵀ) + dP·K̂
//	dU  = Pᵀ·dO + a∘(K̂·G)              the adjoint of solve turns it into dY; dβ = rowsum(dU'·Y), dV = dY
//	dL  = −(dY·Uᵀ) ∘ D, below the diagonal
//	dK̂  = read + written               read = dL·K̂ − (γ∘dY)·Mᵀ, written = dLᵀ·K̂ + dPᵀ·Q̂ + a∘(U·Gᵀ)
//	G   = Γ·G + Q̂ᵀ·(γ∘dO) − K̂ᵀ·(γ∘dY)
//
// where dU' is dU minus the contributions of later rows of the chunk. A decay scales what later tokens read of earlier
// writes, so
//
//	∂/∂ log α_t = Σ_{s ≥ t, in the document} (q̂_s·dQ̂_s + k̂_s·read_s − k̂_s·written_s)
type deltaBackward[T vec.Float] struct {
	deltaJob[T]
	dqkv, dout, out matrix[T]
	norm, dgates    []T
}

// slots returns the largest number of states between the chunks of a row, for any documents, because a chunk that
// continues a document follows a whole chunk.
func (l *linear[T]) slots(length int) int { return (length - 1) / l.chunk }

func (l *linear[T]) deltaBackward(p *pool.Pool, s shape, dqkv, dgates, dout, out, norm, qkv, gates *tensor.Tensor) {
	z := l.sizes(&s)
	var c carver[T]
	newDeltaGrad(&c, z, l.slots(s.length))
	l.reserve(p.Threads(), c.used)
	l.deltaBwd = deltaBackward[T]{norm: wide[T](norm), dgates: wide[T](dgates),
		dqkv: matrixOf[T](dqkv), dout: matrixOf[T](dout), out: matrixOf[T](out),
		deltaJob: deltaJob[T]{l: l, shape: s, sizes: z, qkv: matrixOf[T](qkv), gates: wide[T](gates)}}
	p.Run(s.rows*s.KV, &l.deltaBwd)
	l.deltaBwd = deltaBackward[T]{}
}

// deltaGrad is a worker's scratch memory of the backward pass.
type deltaGrad[T vec.Float] struct {
	deltaChunk[T]
	states        []T // [slots, e, e]: M before each chunk that continues a document
	grad          []T // [e, e]: G
	turned        []T // [e, panel]: a panel of Mᵀ or Gᵀ
	ut            []T // [C/panel, e, panel]: Uᵀ
	do, dq        []T // [C, e]
	du, dy        []T // [C, e]
	read, written []T // [C, e]
	dp            []T // [C, C]: dP, then dL
	f             []T // [C]
	db            []T // [C]: gradients of log γ
}

func newDeltaGrad[T vec.Float](c *carver[T], z sizes, slots int) deltaGrad[T] {
	rows := func() []T { return c.take(linearChunk * z.e) }
	return deltaGrad[T]{
		deltaChunk: newDeltaChunk(c, z), states: c.take(slots * z.e * z.e), grad: c.take(z.e * z.e),
		turned: c.take(z.e * z.panel), ut: rows(), do: rows(), dq: rows(), du: rows(), dy: rows(),
		read: rows(), written: rows(), dp: c.take(linearChunk * linearChunk),
		f: c.take(linearChunk), db: c.take(linearChunk),
	}
}

// Do computes one task.
func (j *deltaBackward[T]) Do(worker, task int) {
	t := newDeltaGrad(&carver[T]{buf: j.l.scratch[worker]}, j.sizes, j.l.slots(j.length))
	row, kv := task/j.KV, task%j.KV
	for from := 0; from < j.length; {
		c := j.l.after(&j.shape, row, from)
		j.forth(&t, c, row, kv)
		from = c.to
	}
	var sum T
	for to := j.length; to > 0; {
		c := j.l.before(&j.shape, row, to)
		sum = j.back(&t, c, row, kv, sum)
		to = c.from
	}
}

// forth stores the state before a chunk, and adds the chunk to the state.
func (j *deltaBackward[T]) forth(t *deltaGrad[T], c span, row, kv int) {
	if c.first {
		clear(t.state)
	} else {
		copy(j.before(t, c), t.state)
	}
	if c.last {
		return
	}
	j.load(&t.deltaChunk, row*j.length+c.from, kv, c.to-c.from)
	j.solve(&t.deltaChunk, c.first, 0, c.to-c.from)
	j.pass(&t.deltaChunk, c.to-c.from)
}

// before returns the memory of the state before a chunk.
func (j *deltaBackward[T]) before(t *deltaGrad[T], c span) []T {
	size := j.e * j.e
	return t.states[(c.from/j.l.chunk-1)*size:][:size]
}

// back computes the gradients of one chunk. sum is the gradient sum of log α from later chunks of the document; back
// returns the sum for the chunk before.
func (j *deltaBackward[T]) back(t *deltaGrad[T], c span, row, kv int, sum T) T {
	at, n := row*j.length+c.from, c.to-c.from
	if !c.first {
		copy(t.state, j.before(t, c))
	}
	j.load(&t.deltaChunk, at, kv, n)
	j.solve(&t.deltaChunk, c.first, 0, n)
	clear(t.u[n*j.e:])
	for p := 0; p < n; p += j.panel {
		j.l.transpose(t.ut[p*j.e:], t.u[p*j.e:], j.e, j.e)
	}
	if c.last {
		sum = 0
	}
	j.fromLater(t, c, n)
	for g := range j.group {
		j.queries(t, c, kv*j.group+g, at, n)
	}
	j.unsolve(t, n)
	j.l.write(&j.dqkv, at, j.valueCol(kv), n, j.Size, t.dy, j.e, 1)
	j.keys(t, c, at, kv, n)
	return j.logits(t, c, at, kv, n, sum)
}

// fromLater sets dU and the written part of dK̂ to the contributions of tokens after the chunk, and decays G.
func (j *deltaBackward[T]) fromLater(t *deltaGrad[T], c span, n int) {
	clear(t.db)
	if c.last {
		clear(t.grad)
		clear(t.du)
		clear(t.written)
		return
	}
	j.times(t.du, t.k, j.e, 1, t.grad, 0, n, j.Size, false)
	j.timesTurned(t, t.written, t.u, t.grad, n, false)
	j.l.scaleRows(t.du, j.e, n, j.e, t.after)
	j.l.scaleRows(t.written, j.e, n, j.e, t.after)
	j.l.vec.Scale(t.grad, t.grad, t.upTo[n-1])
}

// timesTurned computes dst = a·mᵀ for n rows, or adds the product to dst.
func (j *deltaBackward[T]) timesTurned(t *deltaGrad[T], dst, a, m []T, n int, add bool) {
	for c := 0; c < j.e; c += j.panel {
		j.l.transpose(t.turned, m[c*j.e:], j.e, j.e)
		j.l.mul(dst[c:], j.e, a, j.e, 1, t.turned, j.panel, roundUp(n, j.l.tileM), j.Size, add)
	}
}

// queries computes dQ of a head, and adds the contributions of its outputs to dU, to the written part of dK̂, and to
// G.
func (j *deltaBackward[T]) queries(t *deltaGrad[T], c span, head, at, n int) {
	l, e := j.l, j.e
	j.unit(t.q, t.rq, at, j.queryCol(head), n)
	j.outputs(t, head, at, n)
	j.scores(t.p, t.q, t.kt, 0, n)
	j.decay(t.p, t.d, 0, n)
	j.scores(t.dp, t.do, t.ut, 0, n)
	j.decay(t.dp, t.d, 0, n)
	j.times(t.du, t.p, 1, linearChunk, t.do, 0, n, n, true)
	j.times(t.written, t.dp, 1, linearChunk, t.q, 0, n, n, true)
	if !c.first {
		l.scaleRows(t.do, e, n, e, t.upTo)
		j.timesTurned(t, t.dq, t.do, t.state, n, false)
		j.times(t.grad, t.q, 1, e, t.do, 0, e, n, true)
	}
	j.times(t.dq, t.dp, linearChunk, 1, t.k, 0, n, n, !c.first)
	j.ofUnit(t, t.dq, t.q, t.rq, n)
	l.vec.Add(t.db[:n], t.f)
	l.write(&j.dqkv, at, j.queryCol(head), n, j.Size, t.dq, e, 1)
}

// outputs reads the gradients of a head's outputs and turns them into those before the norm, dO.
func (j *deltaBackward[T]) outputs(t *deltaGrad[T], head, at, n int) {
	l, e := j.l, j.e
	l.read(t.do, e, &j.dout, at, head*j.Size, n, j.Size)
	l.read(t.x, e, &j.out, at, head*j.Size, n, j.Size)
	l.normHeadsGrad(t.do, t.x, t.f, j.norm[head*j.tokens+at:], n, e, j.Size)
}

// ofUnit turns the gradients dx of unit vectors x = r·z into those of z, and leaves the products x·dx in f.
func (j *deltaBackward[T]) ofUnit(t *deltaGrad[T], dx, x, r []T, n int) {
	j.l.dot(t.f, dx, x, j.e, n, j.e)
	for i, dot := range t.f[:n] {
		j.l.vec.Axpy(dx[i*j.e:(i+1)*j.e], x[i*j.e:], -dot)
	}
	j.l.scaleRows(dx, j.e, n, j.e, r)
}

// keys computes dK̂ in its two parts, dK, and the part of values in G.
func (j *deltaBackward[T]) keys(t *deltaGrad[T], c span, at, kv, n int) {
	l, e := j.l, j.e
	j.scores(t.dp, t.dy, t.ut, 0, n)
	j.decay(t.dp, t.d, 0, n)
	j.negate(t.dp, 0, n)
	j.times(t.read, t.dp, linearChunk, 1, t.k, 0, n, n, false)
	j.times(t.written, t.dp, 1, linearChunk, t.k, 0, n, n, true)
	l.dot(t.f, t.du, t.y, e, n, e) // of β, for logits
	copy(t.rq, t.f[:n])
	if !c.first {
		for i, f := range t.upTo[:n] {
			t.f[i] = -f
		}
		l.scaleRows(t.dy, e, n, e, t.f)
		j.timesTurned(t, t.read, t.dy, t.state, n, true)
		j.times(t.grad, t.k, 1, e, t.dy, 0, e, n, true)
	}
	l.dot(t.f, t.k, t.read, e, n, e)
	l.vec.Add(t.db[:n], t.f)
	l.vec.Add(t.read[:n*e], t.written)
	l.dot(t.f, t.k, t.written, e, n, e)
	l.vec.Axpy(t.db[:n], t.f, -1)
	j.ofUnit(t, t.read, t.k, t.rk, n)
	l.write(&j.dqkv, at, j.keyCol(kv), n, j.Size, t.read, e, 1)
}

// logits writes the gradients of the gates. A document's first α has nothing to decay.
func (j *deltaBackward[T]) logits(t *deltaGrad[T], c span, at, kv, n int, sum T) T {
	cols := j.GateCols()
	width := cols / j.KV
	for i := n - 1; i >= 0; i-- {
		d := j.dgates[(at+i)*cols+kv*width:][:width]
		d[0] = t.rq[i] * t.beta[i] * (1 - t.beta[i])
		if width == 2 {
			sum += t.db[i]
			if d[1] = sum * (1 - t.gate[i]); c.first && i == 0 {
				d[1] = 0
			}
		}
	}
	return sum
}
