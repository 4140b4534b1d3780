package flash

import (
	"math"

	"anneal/device/cpu/pool"
	"anneal/tensor"
)

// backwardJob is one call of Backward. A task is one row of the batch and one key-value head with its group of query heads,
// so that the sums dK and dV over queries and heads belong to one worker and keep their order.
type backwardJob[T tensor.Number] struct {
	r *runner[T]
	shape
	dqkv, dout, out, qkv matrix[T]
	lse                  []T
}

func (r *runner[T]) backward(p *pool.Pool, s shape, dqkv, dout, out, lse, qkv *tensor.Tensor) {
	var c carver[T]
	r.backwardScratch(&c, &s)
	r.reserve(p.Threads(), c.used)
	r.bwd = backwardJob[T]{r: r, shape: s, lse: wide[T](lse),
		dqkv: matrixOf[T](dqkv), dout: matrixOf[T](dout), out: matrixOf[T](out), qkv: matrixOf[T](qkv)}
	p.Run(s.rows*s.KV, &r.bwd)
	r.bwd = backwardJob[T]{}
}

// backwardTile is a worker's scratch, in the notation of forwardTile; T' is the length of a row rounded up to whole tiles.
type backwardTile[T tensor.Number] struct {
	k, v, dk, dv []T // [T', E']
	q, do, dq    []T // [Bq, E']
	qt, dot      []T // [Bq/n, E', n]: panels of Qᵀ and dOᵀ
	s, ds        []T // [Bk, Bq]
	lse, delta   []T // [Bq]
	ld           int // E'
}

func (r *runner[T]) backwardScratch(c *carver[T], s *shape) backwardTile[T] {
	ld := roundUp(s.Size, r.tileN)
	row, block, tile := roundUp(s.length, r.tileM)*ld, r.blockQ*ld, r.blockQ*r.blockK
	return backwardTile[T]{
		k: c.take(row), v: c.take(row), dk: c.take(row), dv: c.take(row),
		q: c.take(block), do: c.take(block), dq: c.take(block), qt: c.take(block), dot: c.take(block),
		s: c.take(tile), ds: c.take(tile), lse: c.take(r.blockQ), delta: c.take(r.blockQ),
		ld: ld,
	}
}

// Do computes one task.
func (j *backwardJob[T]) Do(worker, task int) {
	r := j.r
	row, kv := task/j.KV, task%j.KV
	t := r.backwardScratch(&carver[T]{buf: r.scratch[worker]}, &j.shape)

	at := row * j.length
	r.read(t.k, t.ld, &j.qkv, at, j.keyCol(kv), j.length, j.Size, 1)
	r.read(t.v, t.ld, &j.qkv, at, j.valueCol(kv), j.length, j.Size, 1)
	clear(t.k[j.length*t.ld:])
	clear(t.v[j.length*t.ld:])
	clear(t.dk)
	clear(t.dv)
	for q0 := 0; q0 < j.length; q0 += r.blockQ {
		q1 := min(q0+r.blockQ, j.length)
		for g := range j.group {
			j.block(&t, kv*j.group+g, row, q0, q1)
		}
	}
	// Queries were scaled by log₂e/√E; dK needs 1/√E.
	r.write(&j.dqkv, at, j.keyCol(kv), j.length, j.Size, t.dk, t.ld, math.Ln2)
	r.write(&j.dqkv, at, j.valueCol(kv), j.length, j.Size, t.dv, t.ld, 1)
}

// block computes dQ of one block of queries of one head and adds its part to dK and dV.
func (j *backwardJob[T]) block(t *backwardTile[T], head, row, q0, q1 int) {
	r := j.r
	j.begin(t, head, row, q0, q1)
	first, _, _ := j.see(row, q0, q1)
	for k0 := first / r.blockK * r.blockK; k0 < q1; k0 += r.blockK {
		k1 := min(k0+r.blockK, q1)
		whole := q1-q0 == r.blockQ // every panel sees all keys of the tile
		for p0 := q0; p0 < q1; p0 += r.tileN {
			p1 := min(p0+r.tileN, q1)
			lo, hi, common := j.see(row, p0, p1)
			masked := min(k1, hi)-1 > p0 || common > k0
			lo, hi = max(k0, lo/r.tileM*r.tileM), min(k1, hi)
			whole = whole && lo == k0 && hi == k1
			if lo < hi {
				j.scores(t, row, q0, p0, p1, k0, lo, hi, masked)
			}
		}
		if whole {
			j.keys(t, 0, r.blockQ, k0, k0, k1)
			continue
		}
		for p0 := q0; p0 < q1; p0 += r.tileN {
			lo, hi, _ := j.see(row, p0, min(p0+r.tileN, q1))
			lo, hi = max(k0, lo/r.tileM*r.tileM), min(k1, hi)
			if lo < hi {
				j.keys(t, p0-q0, r.tileN, k0, lo, hi)
			}
		}
	}
	r.write(&j.dqkv, row*j.length+q0, j.queryCol(head), q1-q0, j.Size, t.dq, t.ld, T(1/math.Sqrt(float64(j.Size))))
}

// begin loads a block of queries and of output gradients and computes delta = rowsum(dO·O). Queries past the end of the row
// are zero and see nothing.
func (j *backwardJob[T]) begin(t *backwardTile[T], head, row, q0, q1 int) {
	r := j.r
	n, at, col := q1-q0, row*j.length+q0, head*j.Size
	r.read(t.q, t.ld, &j.qkv, at, j.queryCol(head), n, j.Size, T(j.scale))
	r.read(t.do, t.ld, &j.dout, at, col, n, j.Size, 1)
	r.read(t.dq, t.ld, &j.out, at, col, n, j.Size, 1) // O, only for delta
	r.dot(t.delta, t.do, t.dq, t.ld, n, t.ld)
	clear(t.dq)
	clear(t.q[n*t.ld:])
	clear(t.do[n*t.ld:])
	clear(t.delta[n:])
	for p := 0; p < n; p += r.tileN {
		r.transpose(t.qt[p*t.ld:], t.q[p*t.ld:], t.ld, t.ld)
		r.transpose(t.dot[p*t.ld:], t.do[p*t.ld:], t.ld, t.ld)
	}
	lse := j.lse[head*j.tokens+at:][:n]
	for i := range t.lse {
		t.lse[i] = -negInf[T]()
		if i < n && lse[i] != negInf[T]() {
			t.lse[i] = lse[i] * math.Log2E
		}
	}
}

// scores fills the columns of one panel of queries in the tiles S and dS, for keys lo…hi.
func (j *backwardJob[T]) scores(t *backwardTile[T], row, q0, p0, p1, k0, lo, hi int, masked bool) {
	r := j.r
	p := p0 - q0
	at := (lo-k0)*r.blockQ + p
	rows := roundUp(hi-lo, r.tileM)
	s, ds := t.s[at:], t.ds[at:]
	r.mul(s, r.blockQ, t.k[lo*t.ld:], t.ld, 1, t.qt[p*t.ld:], r.tileN, rows, j.Size, false)
	r.mul(ds, r.blockQ, t.v[lo*t.ld:], t.ld, 1, t.dot[p*t.ld:], r.tileN, rows, j.Size, false)
	if masked || rows > hi-lo {
		hide(s, r.blockQ, rows, lo, &j.shape, row, p0, p1, r.tileN)
	}
	r.grad(s, ds, r.blockQ, rows, t.lse[p:], t.delta[p:])
}

// keys adds the products of n queries, from p of the block, with keys lo…hi: dV += P·dO, dK += dS·Q, dQ += dSᵀ·K.
func (j *backwardJob[T]) keys(t *backwardTile[T], p, n, k0, lo, hi int) {
	r := j.r
	at := (lo-k0)*r.blockQ + p
	rows := roundUp(hi-lo, r.tileM)
	s, ds := t.s[at:], t.ds[at:]
	for c := 0; c < t.ld; c += r.tileN {
		r.mul(t.dv[lo*t.ld+c:], t.ld, s, r.blockQ, 1, t.do[p*t.ld+c:], t.ld, rows, n, true)
		r.mul(t.dk[lo*t.ld+c:], t.ld, ds, r.blockQ, 1, t.q[p*t.ld+c:], t.ld, rows, n, true)
		r.mul(t.dq[p*t.ld+c:], t.ld, ds, 1, r.blockQ, t.k[lo*t.ld+c:], t.ld, n, hi-lo, true)
	}
}
