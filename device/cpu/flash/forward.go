package flash

import (
	"math"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/tensor"
)

// forwardJob is one call of Forward. A task is one step of a team, in one row of the batch. The longest tasks, late
// in the row, come first.
type forwardJob[T tensor.Number] struct {
	r *runner[T]
	shape
	out, qkv matrix[T]
	kv       matrix[T] // of keys and values: qkv, or a cache
	keyAt    int       // its first column of keys
	lse      []T       // nil if not requested
}

func (r *runner[T]) forward(p *pool.Pool, s shape, out, lse, qkv *tensor.Tensor) {
	in := matrixOf[T](qkv)
	columns := r.inColumns(&s)
	if !columns {
		r.shareBlocks(&s, qkv)
	}
	j := forwardJob[T]{
		r: r, shape: s, out: matrixOf[T](out), qkv: in, kv: in, keyAt: s.keyCol(0), lse: wide[T](lse),
	}
	if columns {
		r.fwd = j
		r.runColumns(p, &r.fwd.shape, false, (*forwardColumns[T])(&r.fwd))
		r.fwd = forwardJob[T]{}
		return
	}
	r.runForward(p, j)
}

func (r *runner[T]) runForward(p *pool.Pool, j forwardJob[T]) {
	r.fwd, r.fwd.r = j, r
	s := &r.fwd.shape
	r.prepare(s, p.Threads())
	var c carver[T]
	r.forwardScratch(&c, s)
	r.reserve(p.Threads(), c.used)
	steps := 0
	for i := range r.teams {
		steps = max(steps, r.teams[i].steps)
	}
	tasks := steps * s.rows * len(r.teams)
	if s.small() {
		p.RunAlone(tasks, &r.fwd)
	} else {
		p.Run(tasks, &r.fwd)
	}
	r.fwd = forwardJob[T]{}
}

// forwardTile is a worker's scratch memory. U is the number of units, E' the head size rounded up to whole panels of
// words, E" that plus the leading words, Bq and Bk the blocks, n the width of a panel, T' the queries of a row, or 0
// if no graph overlaps.
type forwardTile[T tensor.Number] struct {
	k     []T // [Bk, E"], across
	v     []T // [Bk, E'], across
	vd    []T // [Bk, E'], down
	vt    []T // [E', Bk], across: Vᵀ, for matrix units
	qt    []T // [U, Bq/n, E", n]: panels of Qᵀ, down
	o     []T // [U, Bq, E']; on matrix units in transposed panels
	m, l  []T // [U, Bq]
	s     []T // [Bk, n]: scores, then probabilities, down
	q     []T // [n, E"], across
	alpha []T // [n]
	flat  []T // [Bq+n, E']: sums transposed back

	rowO       []T // [T', E']
	rowM, rowL []T // [T']

	ld, led int // E', E"
}

func (r *runner[T]) forwardScratch(c *carver[T], s *shape) forwardTile[T] {
	ld, led := r.strides(s)
	t := forwardTile[T]{
		k: c.take(r.blockK * led / r.pair), v: c.take(r.blockK * ld / r.pair),
		qt: c.take(s.units * s.queries * led / r.pair), o: c.take(s.units * s.queries * ld),
		m: c.take(s.units * s.queries), l: c.take(s.units * s.queries),
		s: c.take(r.blockK * r.tileN), q: c.take(r.tileN * led / r.pair), alpha: c.take(r.tileN),
		ld: ld, led: led,
	}
	t.vd = r.takeDown(c, t.v, r.blockK*ld/r.pair)
	if r.attend != nil {
		t.vt, t.flat = c.take(r.blockK*ld/r.pair), c.take((s.queries+r.tileN)*ld)
	}
	if n := s.length - s.from; s.overlap {
		t.rowO, t.rowM, t.rowL = c.take(n*ld), c.take(n), c.take(n)
	}
	return t
}

// Do computes one task.
func (j *forwardJob[T]) Do(worker, task int) {
	r := j.r
	t := r.forwardScratch(&carver[T]{buf: r.scratch[worker]}, &j.shape)
	m, at := &r.teams[task%len(r.teams)], task/len(r.teams) // the heads of a row are next to each other
	row, step := at%j.rows, m.steps-1-at/j.rows
	w := &r.work[worker]
	switch {
	case step < 0:
	case m.overlaps():
		j.overlapping(&t, w, m, row)
	default:
		for from, to, heads := m.of(step); from < to; {
			from += r.enlist(w, &j.shape, row, m, from, to, heads)
			j.step(&t, w, m, row)
		}
	}
}

// step computes the units of w.
func (j *forwardJob[T]) step(t *forwardTile[T], w *work, m *team, row int) {
	r := j.r
	for u := range w.units {
		j.begin(t, w, u, row)
		j.clear(t, u)
	}
	j.keys(t, w, m, row)
	for u := range w.units {
		q, at := &w.units[u], u*j.queries
		o := t.o[at*t.ld:]
		if q.beside == nil {
			j.divide(q.head, row, q.Strip, t.m[at:], t.l[at:])
		}
		for i, head := range q.beside {
			j.divide(head, row, device.Strip{First: q.First, Step: 1, Count: 1}, t.m[i:], t.l[i:])
		}
		switch {
		case r.lower != nil:
			r.settle(&j.out, w, u, j.token(row, q.First), q.Step, q.head*j.Size, q.Count, j.Size, o, t.ld,
				t.l[at:], t.flat)
		case q.beside == nil:
			j.finish(q.head, row, q.Strip, o, t.ld, t.l[at:])
		}
		for i, head := range q.beside {
			if r.lower == nil {
				j.finish(head, row, device.Strip{First: q.First, Step: 1, Count: 1}, o[i*t.ld:], t.ld, t.l[i:])
			}
		}
	}
}

// begin loads the queries of unit u.
func (j *forwardJob[T]) begin(t *forwardTile[T], w *work, u, row int) {
	r, q, words := j.r, &w.units[u], t.led/j.r.pair
	lead, _ := r.lead(&j.shape)
	for p := 0; p < q.Count; p += r.tileN {
		n := min(r.tileN, q.Count-p)
		if q.beside == nil {
			r.readStrip(t.q[lead:], t.led, &j.qkv, j.token(row, q.First+p*q.Step), q.Step,
				j.queryCol(q.head), n, j.Size)
			r.leadQueries(t.q, words, &j.shape, q, p, n, w.ref)
		}
		for i, head := range q.beside {
			one := unit{head: head, Strip: device.Strip{First: q.First, Step: 1, Count: 1}}
			r.readStrip(t.q[i*words+lead:], t.led, &j.qkv, j.token(row, q.First), 1, j.queryCol(head), 1, j.Size)
			r.leadQueries(t.q[i*words:], words, &j.shape, &one, 0, 1, w.ref)
		}
		clear(t.q[n*words : r.tileN*words])
		r.transpose(t.qt[(u*j.queries+p)*words:], t.q, words, words)
	}
}

// clear resets the sums of unit u.
func (j *forwardJob[T]) clear(t *forwardTile[T], u int) {
	at := u * j.queries
	if j.r.attend == nil {
		clear(t.o[at*t.ld : (at+j.queries)*t.ld])
	}
	clear(t.l[at : at+j.queries])
	for i := range j.queries {
		t.m[at+i] = lowest[T]()
	}
}

// keys adds all keys to the sums of all units.
func (j *forwardJob[T]) keys(t *forwardTile[T], w *work, m *team, row int) {
	r := j.r
	lead, slope := r.lead(&j.shape)
	for len(w.units) > 0 && w.next(r.blockK, r.tileM) {
		r.readKeys(t.k[lead:], t.led, &j.kv, &j.shape, row, j.keyAt+m.kv*j.Size, &w.tile)
		r.leadKeys(t.k, t.led/r.pair, &j.shape, &w.tile, w.ref)
		r.readKeys(t.v, t.ld, &j.kv, &j.shape, row, j.keyAt+(j.KV+m.kv)*j.Size, &w.tile)
		r.down(t.vd, t.ld, t.v, t.ld/r.pair, roundUp(w.tile.keys, r.tileM), t.ld)
		if r.attend != nil {
			r.transpose(t.vt, t.vd, t.ld, t.ld)
			r.attend(*t, r.pieces(w, &j.shape, t.ld, t.led), lead-slope, r.steps(slope, j.Size), j.Size, T(j.scale))
			continue
		}
		for u := range w.units {
			for i := range w.of(u) {
				if p := &w.of(u)[i]; p.lo < p.hi {
					j.tile(t, u*j.queries+i*r.tileN, &w.tile, p)
				}
			}
		}
	}
}

// tile adds the keys of a tile that a panel of queries sees to the panel's sums, which begin at query at of all
// units.
func (j *forwardJob[T]) tile(t *forwardTile[T], at int, keys *keyTile, p *panel) {
	r := j.r
	rows, words, n := roundUp(p.hi-p.lo, r.group), t.led/r.pair, roundUp(p.Count, r.tileM)
	lead, slope := r.lead(&j.shape)
	k, q, o := t.k[p.lo*words+lead-slope:], t.qt[at*words+(lead-slope)*r.tileN:], t.o[at*t.ld:]
	r.mul(t.s, r.tileN, k, words, 1, q, r.tileN, roundUp(rows, r.tileM), slope+r.words(j.Size), false)
	if j.limit > 0 {
		r.softcap(t.s[:rows*r.tileN], t.s[:rows*r.tileN], T(j.limit))
	}
	if p.masked || rows > p.hi-p.lo {
		hide(t.s, r.tileN, rows, p.lo, keys, p, r.tileN)
	}
	r.softmax(t.s, rows, T(j.scale), t.m[at:], t.l[at:], t.alpha)
	if j.FP8 {
		roundE4M3(t.s[:rows*r.tileN])
	}
	r.scaleRows(o, t.ld, n, t.ld, t.alpha)
	if p.masked && len(keys.runs) == 1 && !p.whole {
		n = min(stair, r.tileN)
		for at := 0; at < p.Count; at += n {
			if from, to := p.rows(&keys.runs[0], at, n, r.group); from < to {
				j.mulO(o[at*t.ld:], t.s[(from-p.lo)/r.pair*r.tileN+r.column(at):], t, from, to, n)
			}
		}
		return
	}
	j.mulO(o, t.s, t, p.lo, p.hi, n)
}

// mulO adds the product of the probabilities of n queries and the values of keys lo…hi of the tile to o.
func (j *forwardJob[T]) mulO(o, s []T, t *forwardTile[T], lo, hi, n int) {
	r := j.r
	v := t.vd[lo*t.ld/r.pair:]
	for c := 0; c < j.Size; c += r.tileN {
		r.mul(o[c:], t.ld, s, 1, r.tileN, v[r.column(c):], t.ld, n, r.words(hi-lo), true)
	}
}

// divide turns the sums l of queries q of a head into the factors of outputs, and stores their log-sum-exps.
func (j *forwardJob[T]) divide(head, row int, q device.Strip, m, l []T) {
	for i := range q.Count {
		lse := negInf[T]()
		if j.sinks != nil {
			lse, l[i] = sunk(m[i], l[i], j.sinks.Float64(head))
		} else if l[i] != 0 { // otherwise no key was visible
			lse = T(float64(m[i])*math.Ln2 + math.Log(float64(l[i])))
			l[i] = 1 / l[i]
		}
		if j.lse != nil {
			j.lse[head*j.tokens+j.token(row, q.First+i*q.Step)] = lse
		}
	}
}

// finish multiplies the sums o [Count, ld] of queries q of a head by l and stores them.
func (j *forwardJob[T]) finish(head, row int, q device.Strip, o []T, ld int, l []T) {
	r := j.r
	r.scaleRows(o, ld, q.Count, ld, l)
	r.writeStrip(&j.out, j.token(row, q.First), q.Step, head*j.Size, q.Count, j.Size, o, ld, 1)
}

// lowest is the initial running maximum: below every score, but finite, so that a column without visible keys does
// not give Inf − Inf.
func lowest[T tensor.Number]() T { return T(-math.MaxFloat32 / 2) }

func negInf[T tensor.Number]() T { return T(math.Inf(-1)) }
