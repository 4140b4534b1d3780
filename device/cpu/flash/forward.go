package flash

import (
	"math"

	"anneal/device/cpu/pool"
	"anneal/tensor"
)

// forwardJob is one call of Forward. A task is one block of queries of one row of the batch, for all query heads that
// share a key-value head; the long blocks, late in the row, come first.
type forwardJob[T tensor.Number] struct {
	r *runner[T]
	shape
	out, qkv matrix[T]
	lse      []T
	blocks   int // query blocks per row
}

func (r *runner[T]) forward(p *pool.Pool, s shape, out, lse, qkv *tensor.Tensor) {
	var c carver[T]
	r.forwardScratch(&c, &s)
	r.reserve(p.Threads(), c.used)
	r.fwd = forwardJob[T]{r: r, shape: s, out: matrixOf[T](out), qkv: matrixOf[T](qkv), lse: wide[T](lse)}
	r.fwd.blocks = (s.length + r.blockQ - 1) / r.blockQ
	p.Run(s.rows*s.KV*r.fwd.blocks, &r.fwd)
	r.fwd = forwardJob[T]{}
}

// forwardTile is a worker's scratch. G is the group of query heads, E' the head size rounded up to whole panels of words, Bq and Bk
// the blocks, n the width of a panel.
type forwardTile[T tensor.Number] struct {
	k, v    []T // [Bk, E'], across
	vd      []T // [Bk, E'], down
	qt      []T // [G, Bq/n, E', n]: panels of Qᵀ, down
	o       []T // [G, Bq, E']
	m, l    []T // [G, Bq]
	s       []T // [Bk, n]: scores, then probabilities, down
	q       []T // [n, E'], across
	alpha   []T // [n]
	ld, buf int // E', and the elements of one head's block Bq·E'
}

func (r *runner[T]) forwardScratch(c *carver[T], s *shape) forwardTile[T] {
	ld := roundUp(s.Size, r.tileN*r.pair)
	keys := r.blockK * ld / r.pair
	t := forwardTile[T]{
		k: c.take(keys), v: c.take(keys),
		qt: c.take(s.group * r.blockQ * ld / r.pair), o: c.take(s.group * r.blockQ * ld),
		m: c.take(s.group * r.blockQ), l: c.take(s.group * r.blockQ),
		s: c.take(r.blockK * r.tileN), q: c.take(r.tileN * ld / r.pair), alpha: c.take(r.tileN),
		ld: ld, buf: r.blockQ * ld,
	}
	t.vd = r.takeDown(c, t.v, keys)
	return t
}

// Do computes one task.
func (j *forwardJob[T]) Do(worker, task int) {
	r := j.r
	block := j.blocks - 1 - task/(j.rows*j.KV)
	row, kv := task%(j.rows*j.KV)/j.KV, task%j.KV
	t := r.forwardScratch(&carver[T]{buf: r.scratch[worker]}, &j.shape)

	q0 := block * r.blockQ
	q1 := min(q0+r.blockQ, j.length)
	for g := range j.group {
		j.begin(&t, g, row, kv, q0, q1)
	}
	first, _, _ := j.see(row, q0, q1)
	for k0 := first / r.blockK * r.blockK; k0 < q1; k0 += r.blockK {
		k1 := min(k0+r.blockK, q1)
		r.read(t.k, t.ld, &j.qkv, row*j.length+k0, j.keyCol(kv), k1-k0, j.Size)
		r.read(t.v, t.ld, &j.qkv, row*j.length+k0, j.valueCol(kv), k1-k0, j.Size)
		r.down(t.vd, t.ld, t.v, t.ld/r.pair, k1-k0, t.ld)
		for p0 := q0; p0 < q1; p0 += r.tileN {
			p1 := min(p0+r.tileN, q1)
			lo, hi, common := j.see(row, p0, p1)
			lo, hi = max(k0, lo/r.tileM*r.tileM), min(k1, hi)
			for g := range j.group {
				if lo < hi {
					j.tile(&t, g*t.buf+(p0-q0)*t.ld, g*r.blockQ+p0-q0, row, p0, p1, k0, lo, hi, hi-1 > p0 || common > lo)
				}
			}
		}
	}
	for g := range j.group {
		j.finish(&t, g, row, kv, q0, q1)
	}
}

// begin loads the queries of one head and clears its sums.
func (j *forwardJob[T]) begin(t *forwardTile[T], g, row, kv, q0, q1 int) {
	r := j.r
	head, words := kv*j.group+g, t.ld/r.pair
	for p0 := q0; p0 < q1; p0 += r.tileN {
		n := min(r.tileN, q1-p0)
		r.read(t.q, t.ld, &j.qkv, row*j.length+p0, j.queryCol(head), n, j.Size)
		clear(t.q[n*words:])
		r.transpose(t.qt[(g*r.blockQ+p0-q0)*words:], t.q, words, words)
	}
	clear(t.o[g*t.buf : (g+1)*t.buf])
	at := g * r.blockQ
	clear(t.l[at : at+r.blockQ])
	for i := range r.blockQ {
		t.m[at+i] = lowest[T]()
	}
}

// tile adds keys lo…hi to the sums of the panel of queries p0…p1, whose matrices start at elements at of t.qt and t.o and
// whose maxima and sums at element stat. The tile of keys in t.k and t.v starts at k0.
func (j *forwardJob[T]) tile(t *forwardTile[T], at, stat, row, p0, p1, k0, lo, hi int, masked bool) {
	r := j.r
	rows, words := roundUp(hi-lo, r.pair), t.ld/r.pair
	k, v := t.k[(lo-k0)*words:], t.vd[(lo-k0)*words:]
	r.mul(t.s, r.tileN, k, words, 1, t.qt[at/r.pair:], r.tileN, roundUp(rows, r.tileM), r.words(j.Size), false)
	if masked || rows > hi-lo {
		hide(t.s, r.tileN, rows, lo, &j.shape, row, p0, p1, r.tileN)
	}
	r.softmax(t.s, rows, T(j.scale), t.m[stat:], t.l[stat:], t.alpha)
	r.scaleRows(t.o[at:], t.ld, r.tileN, t.ld, t.alpha)
	for c := 0; c < j.Size; c += r.tileN {
		r.mul(t.o[at+c:], t.ld, t.s, 1, r.tileN, v[c:], t.ld, r.tileN, rows/r.pair, true)
	}
}

// finish divides by the sums and stores one head's output and log-sum-exp.
func (j *forwardJob[T]) finish(t *forwardTile[T], g, row, kv, q0, q1 int) {
	r := j.r
	head, n, at := kv*j.group+g, q1-q0, g*r.blockQ
	m, l := t.m[at:at+n], t.l[at:at+n]
	lse := j.lse[head*j.tokens+row*j.length+q0:][:n]
	for i := range lse {
		if l[i] == 0 { // no key was visible
			lse[i] = negInf[T]()
			continue
		}
		lse[i] = T(float64(m[i])*math.Ln2 + math.Log(float64(l[i])))
		l[i] = 1 / l[i]
	}
	o := t.o[g*t.buf:]
	r.scaleRows(o, t.ld, n, t.ld, l)
	r.write(&j.out, row*j.length+q0, head*j.Size, n, j.Size, o, t.ld, 1)
}

// lowest is where running maxima start: below every score, yet finite, so that a column in which nothing is visible does
// not give Inf − Inf.
func lowest[T tensor.Number]() T { return T(-math.MaxFloat32 / 2) }

func negInf[T tensor.Number]() T { return T(math.Inf(-1)) }
