package flash

import (
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// linearBackward is one call of Linear.Backward. A task is one row of the batch and one key-value head with its group
// of query heads, in one direction. The directions are independent, except that with gates the reverse one adds to
// the result of the other.
//
// With dO' = dO/n and δ = rowsum(dO'·O) the gradient of a score w_ji = φ(k_j)·φ(q_i) is D_ji·(dO'_i·v_j − δ_i), so
// with U = [dO' −δ] [C, E+1]
//
//	dW [keys, queries]  = ([V 1] · Uᵀ) ∘ D
//	dQ̂ [C, E]           = γ ∘ (U · T) + dWᵀ · K̂
//	dK̂ [C, E]           = β ∘ ([V 1] · dT) + dW · Q̂          dT [E+1, E] is of the state after the chunk
//	dV [C, E]           = β ∘ (K̂ · dTᵀ) + P · dO'
//	dT                  = Γ·dT + Uᵀ · (γ ∘ Q̂)
//
// A gate scales the flow from earlier keys to later queries. That is what later queries receive from all keys, minus
// what they receive from later keys, which equals what later keys give:
//
//	∂/∂ log g_t = Σ_{s ≥ t, in the document} (φ(q_s)·dQ̂_s − φ(k_s)·dK̂_s)
type linearBackward[T vec.Float] struct {
	l *linear[T]
	shape
	sizes
	dqkv, dout, out, qkv matrix[T]
	norm, gates, dgates  []T
	reverse, onward      int // tasks per direction
}

func (l *linear[T]) backward(p *pool.Pool, s shape, dqkv, dgates, dout, out, norm, qkv, gates *tensor.Tensor) {
	z := l.sizes(&s)
	var c carver[T]
	newLinearBackwardTile(&c, z)
	l.reserve(p.Threads(), c.used)
	l.bwd = linearBackward[T]{l: l, shape: s, sizes: z, norm: wide[T](norm),
		dqkv: matrixOf[T](dqkv), dout: matrixOf[T](dout), out: matrixOf[T](out), qkv: matrixOf[T](qkv)}
	tasks := s.rows * s.KV
	if gates != nil {
		l.bwd.gates, l.bwd.dgates = wide[T](gates), wide[T](dgates)
		l.bwd.onward = tasks
		p.Run(tasks, &l.bwd)
		l.bwd.reverse, l.bwd.onward = tasks, 0
		p.Run(tasks, &l.bwd)
	} else {
		l.bwd.reverse, l.bwd.onward = tasks, tasks
		p.Run(2*tasks, &l.bwd)
	}
	l.bwd = linearBackward[T]{}
}

// linearBackwardTile is a worker's scratch memory, with the symbols of linearTile.
type linearBackwardTile[T vec.Float] struct {
	state          []T // [v, e]: T, or its gradient
	turned         []T // [v, n]: a panel of dTᵀ
	k, q           []T // [C, e]: features
	slopeK, slopeQ []T // [C, e]
	v, u           []T // [C, v]
	o              []T // [C, v]
	qt             []T // [e, n]: a panel of Q̂ᵀ
	ut             []T // [v, n]: a panel of Uᵀ
	s, dw          []T // [C, n]: scores and their gradients
	dk, dv         []T // [C, e]
	dq             []T // [n, e]
	f, delta       []T // [C]: 1/n, δ
	dots           []T // [C]: φ(x)·dφ(x)
	decay          decays[T]
}

func newLinearBackwardTile[T vec.Float](c *carver[T], z sizes) linearBackwardTile[T] {
	narrow, broad := linearChunk*z.e, linearChunk*z.v
	return linearBackwardTile[T]{
		state: c.take(z.v * z.e), turned: c.take(z.e * z.panel),
		k: c.take(narrow), q: c.take(narrow), slopeK: c.take(narrow), slopeQ: c.take(narrow),
		v: c.take(broad), u: c.take(broad), o: c.take(broad),
		qt: c.take(z.e * z.panel), ut: c.take(z.v * z.panel),
		s: c.take(linearChunk * z.panel), dw: c.take(linearChunk * z.panel),
		dk: c.take(narrow), dv: c.take(narrow), dq: c.take(z.panel * z.e),
		f: c.take(linearChunk), delta: c.take(linearChunk), dots: c.take(linearChunk), decay: newDecays(c),
	}
}

// Do computes one task.
func (j *linearBackward[T]) Do(worker, task int) {
	t := newLinearBackwardTile(&carver[T]{buf: j.l.scratch[worker]}, j.sizes)
	row, kv := task%(j.rows*j.KV)/j.KV, task%j.KV
	if task >= j.reverse {
		for from := 0; from < j.length; {
			c := j.l.after(&j.shape, row, from)
			j.queries(&t, c, row, kv)
			from = c.to
		}
		return
	}
	var sum T
	for to := j.length; to > 0; {
		c := j.l.before(&j.shape, row, to)
		sum = j.keys(&t, c, row, kv, sum)
		to = c.from
	}
}

// queries computes dQ of one chunk and adds its keys and values to the state.
func (j *linearBackward[T]) queries(t *linearBackwardTile[T], c span, row, kv int) {
	l, z := j.l, j.sizes
	at, n := row*j.length+c.from, c.to-c.from
	if c.first {
		clear(t.state)
	}
	j.load(t, at, kv, n)
	for g := range j.group {
		head := kv*j.group + g
		j.loadHead(t, head, at, n)
		for p0 := 0; p0 < n; p0 += z.panel {
			p1 := min(p0+z.panel, n)
			rows := roundUp(p1-p0, l.tileM)
			j.weights(t, p0, p1)
			for e := 0; e < z.e; e += z.panel {
				if !c.first {
					l.mul(t.dq[e:], z.e, t.u[p0*z.v:], z.v, 1, t.state[e:], z.e, rows, j.Size+1, false)
					if t.decay.gated() {
						l.scaleRows(t.dq[e:], z.e, p1-p0, z.panel, t.decay.upTo[p0:])
					}
				}
				l.mul(t.dq[e:], z.e, t.dw, 1, z.panel, t.k[e:], z.e, rows, p1, !c.first)
			}
			if t.decay.gated() {
				j.gateOfQueries(t, g, at, kv, p0, p1)
			}
			dq := t.dq[:(p1-p0)*z.e]
			l.vec.Mul(dq, dq, t.slopeQ[p0*z.e:])
			l.write(&j.dqkv, at+p0, j.queryCol(head), p1-p0, j.Size, dq, z.e, 1)
		}
	}
	if c.last {
		return
	}
	if t.decay.gated() {
		l.vec.Scale(t.state, t.state, t.decay.whole(n))
		l.scaleRows(t.k, z.e, n, z.e, t.decay.after)
	}
	l.absorb(t.state, t.v, t.k, n, z)
}

// keys computes dK, dV and the gradient of the gates of one chunk and adds its queries to the gradient of the state.
// sum is the gates' gradient from later chunks of the document; keys returns the sum for the chunk before.
func (j *linearBackward[T]) keys(t *linearBackwardTile[T], c span, row, kv int, sum T) T {
	l, z := j.l, j.sizes
	at, n := row*j.length+c.from, c.to-c.from
	j.load(t, at, kv, n)
	j.fromLater(t, c, n)
	for g := range j.group {
		head := kv*j.group + g
		j.loadHead(t, head, at, n)
		for p0 := 0; p0 < n; p0 += z.panel {
			p1 := min(p0+z.panel, n)
			rows := roundUp(p1, l.tileM)
			j.weights(t, p0, p1)
			q := t.q[p0*z.e:]
			l.transpose(t.qt, q, z.e, z.e)
			l.mul(t.s, z.panel, t.k, z.e, 1, t.qt, z.panel, rows, j.Size, false)
			l.weigh(t.s, &t.decay, p0, p1, z)
			for e := 0; e < z.e; e += z.panel {
				l.mul(t.dk[e:], z.e, t.dw, z.panel, 1, q[e:], z.e, rows, p1-p0, true)
				l.mul(t.dv[e:], z.e, t.s, z.panel, 1, t.u[p0*z.v+e:], z.v, rows, p1-p0, true)
			}
		}
		if c.first {
			continue
		}
		if t.decay.gated() {
			l.scaleRows(t.q, z.e, n, z.e, t.decay.upTo)
		}
		l.absorb(t.state, t.u, t.q, n, z)
	}
	if t.decay.gated() {
		sum = j.gateOfKeys(t, c, at, kv, n, sum)
	}
	l.vec.Mul(t.dk[:n*z.e], t.dk, t.slopeK)
	l.write(&j.dqkv, at, j.keyCol(kv), n, j.Size, t.dk, z.e, 1)
	l.write(&j.dqkv, at, j.valueCol(kv), n, j.Size, t.dv, z.e, 1)
	return sum
}

// fromLater sets dK and dV to the contribution of queries after the chunk, and decays the gradient of the state by
// the gates of the chunk.
func (j *linearBackward[T]) fromLater(t *linearBackwardTile[T], c span, n int) {
	l, z := j.l, j.sizes
	if c.last {
		clear(t.state)
		clear(t.dk)
		clear(t.dv)
		return
	}
	rows := roundUp(n, l.tileM)
	for e := 0; e < z.e; e += z.panel {
		l.mul(t.dk[e:], z.e, t.v, z.v, 1, t.state[e:], z.e, rows, j.Size+1, false)
		l.transpose(t.turned, t.state[e*z.e:], z.e, z.e)
		l.mul(t.dv[e:], z.e, t.k, z.e, 1, t.turned, z.panel, rows, j.Size, false)
	}
	if t.decay.gated() {
		l.scaleRows(t.dk, z.e, n, z.e, t.decay.after)
		l.scaleRows(t.dv, z.e, n, z.e, t.decay.after)
		l.vec.Scale(t.state, t.state, t.decay.whole(n))
	}
}

// gateOfQueries adds φ(q)·dQ̂ of the group to the gates' gradient.
func (j *linearBackward[T]) gateOfQueries(t *linearBackwardTile[T], g, at, kv, p0, p1 int) {
	j.l.dot(t.dots, t.q[p0*j.e:], t.dq, j.e, p1-p0, j.e)
	for i, x := range t.dots[:p1-p0] {
		d := &j.dgates[(at+p0+i)*j.KV+kv]
		if g == 0 {
			*d = 0
		}
		*d += x
	}
}

// gateOfKeys converts that into the gradient of the gates' logits. A document's first gate has nothing to decay.
func (j *linearBackward[T]) gateOfKeys(t *linearBackwardTile[T], c span, at, kv, n int, sum T) T {
	if c.last {
		sum = 0
	}
	j.l.dot(t.dots, t.k, t.dk, j.e, n, j.e)
	for i := n - 1; i >= 0; i-- {
		d := &j.dgates[(at+i)*j.KV+kv]
		sum += *d - t.dots[i]
		*d = sum * (1 - t.decay.gate[i])
	}
	if c.first {
		j.dgates[at*j.KV+kv] = 0
	}
	return sum
}

// load reads the keys, values and gates of n tokens.
func (j *linearBackward[T]) load(t *linearBackwardTile[T], at, kv, n int) {
	j.l.features(t.k, t.slopeK, &j.qkv, at, j.keyCol(kv), n, j.sizes, j.Size)
	j.l.values(t.v, &j.qkv, at, j.valueCol(kv), n, j.sizes, j.Size)
	j.l.begin(&t.decay, j.gates, at, kv, n, &j.shape)
}

// loadHead reads n queries of a head and computes U from the gradients of their outputs.
func (j *linearBackward[T]) loadHead(t *linearBackwardTile[T], head, at, n int) {
	l, z := j.l, j.sizes
	l.features(t.q, t.slopeQ, &j.qkv, at, j.queryCol(head), n, z, j.Size)
	l.read(t.u, z.v, &j.dout, at, head*j.Size, n, j.Size)
	l.read(t.o, z.v, &j.out, at, head*j.Size, n, j.Size)
	l.dot(t.delta, t.u, t.o, z.v, n, z.v)
	for i, norm := range j.norm[head*j.tokens+at:][:n] {
		t.f[i] = 1 / norm
		t.delta[i] *= t.f[i]
	}
	l.scaleRows(t.u, z.v, n, z.v, t.f)
	for i, d := range t.delta[:n] {
		t.u[i*z.v+j.Size] = -d
	}
}

// weights computes dW of queries p0…p1 of the chunk.
func (j *linearBackward[T]) weights(t *linearBackwardTile[T], p0, p1 int) {
	l, z := j.l, j.sizes
	l.transpose(t.ut, t.u[p0*z.v:], z.v, z.v)
	l.mul(t.dw, z.panel, t.v, z.v, 1, t.ut, z.panel, roundUp(p1, l.tileM), j.Size+1, false)
	l.weigh(t.dw, &t.decay, p0, p1, z)
}
