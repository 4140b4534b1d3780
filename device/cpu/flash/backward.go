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
	k, v    []T // [T', E'], across
	kd      []T // [T', E'], down
	dk, dv  []T // [T', E']
	q, do   []T // [Bq, E'], across
	qd, dod []T // [Bq, E'], down
	qt, dot []T // [Bq/n, E', n]: panels of Qᵀ and dOᵀ, down
	dq      []T // [Bq, E']
	s, ds   []T // [Bk, Bq]: scores and gradients of probabilities, then probabilities and gradients of scores, across
	dsd     []T // [Bk, Bq]: gradients of scores, down
	lse     []T // [Bq]
	delta   []T // [Bq]
	ld      int // E'
}

func (r *runner[T]) backwardScratch(c *carver[T], s *shape) backwardTile[T] {
	ld := roundUp(s.Size, r.tileN*r.pair)
	row, block, tile := roundUp(s.length, r.tileM)*ld, r.blockQ*ld, r.blockQ*r.blockK
	rowWords, blockWords := row/r.pair, block/r.pair
	t := backwardTile[T]{
		k: c.take(rowWords), v: c.take(rowWords), dk: c.take(row), dv: c.take(row),
		q: c.take(blockWords), do: c.take(blockWords), qt: c.take(blockWords), dot: c.take(blockWords), dq: c.take(block),
		s: c.take(tile), ds: c.take(tile), lse: c.take(r.blockQ), delta: c.take(r.blockQ),
		ld: ld,
	}
	t.kd = r.takeDown(c, t.k, rowWords)
	t.qd, t.dod = r.takeDown(c, t.q, blockWords), r.takeDown(c, t.do, blockWords)
	t.dsd = r.takeDown(c, t.ds, tile/r.pair)
	return t
}

// Do computes one task.
func (j *backwardJob[T]) Do(worker, task int) {
	r := j.r
	row, kv := task/j.KV, task%j.KV
	t := r.backwardScratch(&carver[T]{buf: r.scratch[worker]}, &j.shape)

	at, words := row*j.length, t.ld/r.pair
	r.read(t.k, t.ld, &j.qkv, at, j.keyCol(kv), j.length, j.Size)
	r.read(t.v, t.ld, &j.qkv, at, j.valueCol(kv), j.length, j.Size)
	clear(t.k[j.length*words:])
	clear(t.v[j.length*words:])
	r.down(t.kd, t.ld, t.k, words, j.length, t.ld)
	clear(t.dk)
	clear(t.dv)
	for q0 := 0; q0 < j.length; q0 += r.blockQ {
		q1 := min(q0+r.blockQ, j.length)
		for g := range j.group {
			j.block(&t, kv*j.group+g, row, q0, q1)
		}
	}
	r.write(&j.dqkv, at, j.keyCol(kv), j.length, j.Size, t.dk, t.ld, j.slope())
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
	r.write(&j.dqkv, row*j.length+q0, j.queryCol(head), q1-q0, j.Size, t.dq, t.ld, j.slope())
}

// slope is the derivative of the scaled scores.
func (j *backwardJob[T]) slope() T { return T(j.ScoreScale()) }

// begin loads a block of queries and of output gradients and computes delta = rowsum(dO·O). Queries past the end of the row
// are zero and see nothing.
func (j *backwardJob[T]) begin(t *backwardTile[T], head, row, q0, q1 int) {
	r := j.r
	n, at, col, words := q1-q0, row*j.length+q0, head*j.Size, t.ld/r.pair
	r.read(t.q, t.ld, &j.qkv, at, j.queryCol(head), n, j.Size)
	r.read(t.do, t.ld, &j.dout, at, col, n, j.Size)
	r.read(t.dq, t.ld, &j.out, at, col, n, j.Size) // O, only for delta
	r.dot(t.delta, t.do, t.dq, words, n, words)
	clear(t.dq)
	clear(t.q[n*words:])
	clear(t.do[n*words:])
	clear(t.delta[n:])
	for p := 0; p < n; p += r.tileN {
		r.transpose(t.qt[p*words:], t.q[p*words:], words, words)
		r.transpose(t.dot[p*words:], t.do[p*words:], words, words)
	}
	r.down(t.qd, t.ld, t.q, words, r.blockQ, t.ld)
	r.down(t.dod, t.ld, t.do, words, r.blockQ, t.ld)
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
	p, line, words := p0-q0, (lo-k0)*r.blockQ, t.ld/r.pair
	rows := roundUp(hi-lo, r.tileM)
	s, dp := t.s[line+p:], t.ds[line+p:]
	r.mul(s, r.blockQ, t.k[lo*words:], words, 1, t.qt[p*words:], r.tileN, rows, r.words(j.Size), false)
	r.mul(dp, r.blockQ, t.v[lo*words:], words, 1, t.dot[p*words:], r.tileN, rows, r.words(j.Size), false)
	if masked || rows > hi-lo {
		hide(s, r.blockQ, rows, lo, &j.shape, row, p0, p1, r.tileN)
	}
	ds := t.ds[line+p/r.pair:]
	r.grad(t.s[line+p/r.pair:], ds, s, dp, r.blockQ, rows, T(j.scale), t.lse[p:], t.delta[p:])
	r.down(t.dsd[line/r.pair+p:], r.blockQ, ds, r.blockQ, rows, r.tileN)
}

// keys adds the products of n queries, from p of the block, with keys lo…hi: dV += P·dO, dK += dS·Q, dQ += dSᵀ·K.
func (j *backwardJob[T]) keys(t *backwardTile[T], p, n, k0, lo, hi int) {
	r := j.r
	line, words := (lo-k0)*r.blockQ, t.ld/r.pair
	rows := roundUp(hi-lo, r.tileM)
	s, ds, dsd := t.s[line+p/r.pair:], t.ds[line+p/r.pair:], t.dsd[line/r.pair+p:]
	q, do, k := t.qd[p*words:], t.dod[p*words:], t.kd[lo*words:]
	for c := 0; c < j.Size; c += r.tileN {
		r.mul(t.dv[lo*t.ld+c:], t.ld, s, r.blockQ, 1, do[c:], t.ld, rows, n/r.pair, true)
		r.mul(t.dk[lo*t.ld+c:], t.ld, ds, r.blockQ, 1, q[c:], t.ld, rows, n/r.pair, true)
		r.mul(t.dq[p*t.ld+c:], t.ld, dsd, 1, r.blockQ, k[c:], t.ld, n, r.words(hi-lo), true)
	}
}
