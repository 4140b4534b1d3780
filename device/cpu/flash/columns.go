package flash

import (
	"math"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/tensor"
)

// Rows that are much shorter than a block of queries, as in studies of small tasks, leave most of a tile of scores
// empty. They are computed in columns instead: a vector holds the same element of as many rows as it has lanes, one
// row in each column, and hidden scores are not computed. Rows do not mix, so a NaN stays in its row. All sums have
// the order of the tiled loops, and therefore their bits. Words must be elements: pairs would need another order.

// inColumns reports whether rows are computed in columns: if they fill a panel well enough, which costs as much as
// tileN/16 rows of tiles for each token. Rows have at most as many tokens as tiles compute without stairs.
func (r *runner[T]) inColumns(s *shape) bool {
	return r.pair == 1 && s.layout == nil && s.slopes == nil && s.limit == 0 && !s.FP8 && s.from == 0 &&
		s.length <= min(stair, r.tileN) && 16*s.rows >= s.length*r.tileN && s.rows > 1
}

// columnTile is a worker's scratch memory: n is the number of columns, a panel; E' the head size rounded up to whole
// panels; T the length of a row.
type columnTile[T tensor.Number] struct {
	q, do  []T // [E', n]: of one query
	k, v   []T // [T, E', n]
	dk, dv []T // [T, E', n]
	hk, hv []T // [T, E', n]: of one head, if several have the same keys
	o      []T // [E', n]: a sum
	s, ds  []T // [T, n]
	rows   []T // [n, E']: of a token, not in columns
	other  []T // [n, E']
	back   []T // [n, n]

	m, l, alpha, delta []T // [n]

	ld int // E'
}

func (r *runner[T]) columnScratch(c *carver[T], s *shape, trains bool) columnTile[T] {
	n := r.tileN
	ld, _ := r.strides(s)
	t := columnTile[T]{
		q: c.take(ld * n), k: c.take(s.length * ld * n), v: c.take(s.length * ld * n), o: c.take(ld * n),
		s: c.take(s.length * n), rows: c.take(ld * n), other: c.take(ld * n), back: c.take(n * n),
		m: c.take(n), l: c.take(n), alpha: c.take(n), ld: ld,
	}
	if trains {
		t.do, t.ds, t.delta = c.take(ld*n), c.take(s.length*n), c.take(n)
		t.dk, t.dv = c.take(s.length*ld*n), c.take(s.length*ld*n)
		if s.group > 1 {
			t.hk, t.hv = c.take(s.length*ld*n), c.take(s.length*ld*n)
		}
	}
	return t
}

// columnTasks returns the number of tasks: a panel of rows and a key-value head each.
func (r *runner[T]) columnTasks(s *shape) int { return (s.rows + r.tileN - 1) / r.tileN * s.KV }

// runColumns runs a job of columns.
func (r *runner[T]) runColumns(p *pool.Pool, s *shape, trains bool, j pool.Job) {
	var c carver[T]
	r.columnScratch(&c, s, trains)
	r.reserve(p.Threads(), c.used)
	if s.small() {
		p.RunAlone(r.columnTasks(s), j)
	} else {
		p.Run(r.columnTasks(s), j)
	}
}

// toColumns reads a head's columns, from col on, of token i of n rows from row on, to dst [E', tileN].
func (r *runner[T]) toColumns(dst []T, t *columnTile[T], x *matrix[T], s *shape, row, n, i, col int) {
	if wide := s.Size &^ 15; x.wide != nil && n == r.tileN && wide == s.Size {
		r.transpose(dst, x.wide[s.token(row, i)*x.cols+col:], s.length*x.cols, wide)
		return
	}
	r.readRows(t.rows, t.ld, x, s, row, n, i, col)
	r.transpose(dst, t.rows, t.ld, min(t.ld, roundUp(s.Size, 16)))
}

// readRows reads the same elements to dst [n, E']. It leaves the elements outside the head or the rows, which are 0.
func (r *runner[T]) readRows(dst []T, ld int, x *matrix[T], s *shape, row, n, i, col int) {
	from, stride := s.token(row, i)*x.cols+col, s.length*x.cols
	switch {
	case x.narrow != nil:
		r.loadBF16(dst, ld, x.narrow[from:], stride, n, s.Size)
	case x.half != nil:
		r.loadF16(dst, ld, x.half[from:], stride, n, s.Size)
	default:
		r.load(dst, ld, x.wide[from:], stride, n, s.Size, 1)
	}
}

// fromColumns writes src [E', tileN] to a head's columns of token i of n rows, times factors of the rows, if there are
// any, and scale.
func (r *runner[T]) fromColumns(x *matrix[T], t *columnTile[T], src, factors []T, s *shape, row, n, i, col int,
	scale T) {
	w := r.tileN
	for c := 0; c < s.Size; c += w {
		r.transpose(t.back, src[c*w:], w, w)
		if factors != nil {
			r.scaleRows(t.back, w, n, w, factors)
		}
		r.writeStrip(x, s.token(row, i), s.length, col+c, n, min(w, s.Size-c), t.back, w, scale)
	}
}

// veil sets the scores s [i+1, n] of token i with tokens of earlier documents to −Inf.
func (r *runner[T]) veil(s []T, h *shape, row, n, i int) {
	if h.start == nil {
		return
	}
	for c := range n {
		for k := range min(int(h.start[h.token(row+c, i)]), i+1) {
			s[k*r.tileN+c] = negInf[T]()
		}
	}
}

// Do computes one task in columns.
func (j *forwardColumns[T]) Do(worker, task int) {
	r, s, w := j.r, &j.shape, j.r.tileN
	t := r.columnScratch(&carver[T]{buf: r.scratch[worker]}, s, false)
	row, kv := task/s.KV*w, task%s.KV
	n := min(w, s.rows-row)
	clear(t.rows)
	for i := range s.length {
		r.toColumns(t.k[i*t.ld*w:], &t, &j.qkv, s, row, n, i, s.keyCol(kv))
		r.toColumns(t.v[i*t.ld*w:], &t, &j.qkv, s, row, n, i, s.valueCol(kv))
	}
	clear(t.o[s.Size*w:])
	for head := kv * s.group; head < (kv+1)*s.group; head++ {
		for i := range s.length {
			r.toColumns(t.q, &t, &j.qkv, s, row, n, i, s.queryCol(head))
			r.dotColumns(t.s, t.q, t.k, i+1, s.Size, t.ld*w)
			r.veil(t.s, s, row, n, i)
			clear(t.l)
			for c := range t.m {
				t.m[c] = lowest[T]()
			}
			r.softmax(t.s, i+1, T(s.scale), t.m, t.l, t.alpha)
			r.sumColumns(t.o, t.s, t.v, i+1, s.Size, t.ld*w)
			(*forwardJob[T])(j).divide(head, row, device.Strip{First: i, Step: s.length, Count: n}, t.m, t.l)
			r.fromColumns(&j.out, &t, t.o, t.l, s, row, n, i, head*s.Size, 1)
		}
	}
}

// forwardColumns is a forwardJob whose tasks are in columns; backwardColumns a backwardJob.
type (
	forwardColumns[T tensor.Number]  forwardJob[T]
	backwardColumns[T tensor.Number] backwardJob[T]
)

// Do computes one task in columns. Several heads with the same keys are added as in the tiled loops: each head
// separately, then to the sum.
func (j *backwardColumns[T]) Do(worker, task int) {
	r, s, w := j.r, &j.shape, j.r.tileN
	t := r.columnScratch(&carver[T]{buf: r.scratch[worker]}, s, true)
	row, kv := task/s.KV*w, task%s.KV
	n := min(w, s.rows-row)
	factor := (*backwardJob[T])(j).factor()
	clear(t.rows)
	clear(t.other)
	for i := range s.length {
		r.toColumns(t.k[i*t.ld*w:], &t, &j.qkv, s, row, n, i, s.keyCol(kv))
		r.toColumns(t.v[i*t.ld*w:], &t, &j.qkv, s, row, n, i, s.valueCol(kv))
	}
	clear(t.dk)
	clear(t.dv)
	clear(t.o[s.Size*w:])
	for head := kv * s.group; head < (kv+1)*s.group; head++ {
		dk, dv := t.dk, t.dv
		if head > kv*s.group {
			dk, dv = t.hk, t.hv
			clear(dk)
			clear(dv)
		}
		for i := range s.length {
			j.query(&t, dk, dv, head, row, n, i)
			r.fromColumns(&j.dqkv, &t, t.o, nil, s, row, n, i, s.queryCol(head), factor)
		}
		if head > kv*s.group {
			for e, x := range dk {
				t.dk[e] += x
			}
			for e, x := range dv {
				t.dv[e] += x
			}
		}
	}
	for i := range s.length {
		r.fromColumns(&j.dqkv, &t, t.dk[i*t.ld*w:], nil, s, row, n, i, s.keyCol(kv), factor)
		r.fromColumns(&j.dqkv, &t, t.dv[i*t.ld*w:], nil, s, row, n, i, s.valueCol(kv), 1)
	}
}

// query adds to dk and dv the contribution of token i of n rows as a query, and stores its dQ, before scaling, in t.o.
func (j *backwardColumns[T]) query(t *columnTile[T], dk, dv []T, head, row, n, i int) {
	r, s, w, col := j.r, &j.shape, j.r.tileN, head*j.Size
	r.toColumns(t.q, t, &j.qkv, s, row, n, i, s.queryCol(head))
	r.readRows(t.other, t.ld, &j.out, s, row, n, i, col)
	r.readRows(t.rows, t.ld, &j.dout, s, row, n, i, col)
	r.transpose(t.do, t.rows, t.ld, min(t.ld, roundUp(s.Size, 16)))
	r.dot(t.delta, t.rows, t.other, t.ld, n, t.ld)
	clear(t.delta[n:])
	for c := range t.l {
		t.l[c] = -negInf[T]()
		if c < n {
			if l := j.lse[head*s.tokens+s.token(row+c, i)]; l != negInf[T]() {
				t.l[c] = l * math.Log2E
			}
		}
	}
	r.dotColumns(t.s, t.q, t.k, i+1, s.Size, t.ld*w)
	r.dotColumns(t.ds, t.do, t.v, i+1, s.Size, t.ld*w)
	r.veil(t.s, s, row, n, i)
	r.grad(t.s, t.ds, t.s, t.ds, w, i+1, T(s.scale), t.l, t.delta)
	r.addColumns(dv, t.s, t.do, i+1, s.Size, t.ld*w)
	r.addColumns(dk, t.ds, t.q, i+1, s.Size, t.ld*w)
	r.sumColumns(t.o, t.ds, t.k, i+1, s.Size, t.ld*w)
}
