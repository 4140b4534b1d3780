package flash

import (
	"math"

	"anneal/device/cpu/pool"
	"anneal/tensor"
)

// backwardJob is one call of Backward. A task is one row of the batch and one key-value head with its group of query
// heads, so that one worker adds up dK and dV over queries and heads, in a fixed order: the steps of its teams. If
// that would leave workers idle, a task is one step of a wave (wave.go).
type backwardJob[T tensor.Number] struct {
	r *runner[T]
	shape
	dqkv, dout, out, qkv matrix[T]
	lse                  []T
}

func (r *runner[T]) backward(p *pool.Pool, s shape, dqkv, dout, out, lse, qkv *tensor.Tensor) {
	columns := r.inColumns(&s)
	if !columns {
		r.shareBlocks(&s, qkv, out, dout)
	}
	r.bwd = backwardJob[T]{r: r, shape: s, lse: wide[T](lse),
		dqkv: matrixOf[T](dqkv), dout: matrixOf[T](dout), out: matrixOf[T](out), qkv: matrixOf[T](qkv)}
	if columns {
		r.runColumns(p, &r.bwd.shape, true, (*backwardColumns[T])(&r.bwd))
		r.bwd = backwardJob[T]{}
		return
	}
	r.prepare(&r.bwd.shape, p.Threads())
	s = r.bwd.shape
	var c carver[T]
	r.backwardScratch(&c, &s)
	r.reserve(p.Threads(), c.used)
	if s.small() {
		p.RunAlone(r.wave.launch(s.rows*s.KV, 1, r.teams), &r.bwd)
	} else {
		p.Run(r.wave.launch(s.rows*s.KV, p.Threads(), r.teams), &r.bwd)
	}
	r.bwd = backwardJob[T]{}
}

// backwardTile is a worker's scratch memory, with the symbols of forwardTile; T' is the length of a row rounded up to
// whole tiles.
type backwardTile[T tensor.Number] struct {
	dk, dv       []T // [T', E']
	k            []T // [Bk, E"], across
	v            []T // [Bk, E'], across
	kd           []T // [Bk, E"], down
	kt           []T // [E', Bk], across: Kᵀ, for matrix units
	tileK, tileV []T // [Bk, E']: dK and dV of keys that are not neighbours

	q, qd, qt    []T // [U, Bq, E"]: queries across, down, and in panels of Qᵀ, down
	do, dod, dot []T // [U, Bq, E']: the same of gradients of outputs
	dq           []T // [U, Bq, E']; on matrix units in transposed panels
	lse, delta   []T // [U, Bq]

	s, ds []T // [Bk, Bq]: scores and gradients of probabilities, then probabilities and gradients of scores, across
	dsd   []T // [Bk, Bq]: gradients of scores, down

	rowQ    []T // [T', E']: dQ of a head whose blocks overlap
	flat    []T // [Bq+n, E']: sums transposed back
	factors []T // [Bq]: their factors

	ld, led int // E', E"
}

func (r *runner[T]) backwardScratch(c *carver[T], s *shape) backwardTile[T] {
	ld, led := r.strides(s)
	row, keys, tile := roundUp(s.length, r.tileM)*ld, r.blockK*ld, s.queries*r.blockK
	scores := tile
	if r.descend != nil {
		scores = (1 + s.units) * tile / 2 // a panel's scores, then the results of all units, in words
	}
	block, scored := s.units*s.queries*ld, s.units*s.queries*led/r.pair
	t := backwardTile[T]{
		dk: c.take(row), dv: c.take(row), k: c.take(r.blockK * led / r.pair), v: c.take(keys / r.pair),
		tileK: c.take(keys), tileV: c.take(keys), q: c.take(scored), qt: c.take(scored), do: c.take(block / r.pair),
		dot: c.take(block / r.pair), dq: c.take(block), lse: c.take(s.units * s.queries),
		delta: c.take(s.units * s.queries), s: c.take(scores), ds: c.take(scores), ld: ld, led: led,
	}
	t.kd = r.takeDown(c, t.k, r.blockK*led/r.pair)
	t.qd, t.dod = r.takeDown(c, t.q, scored), r.takeDown(c, t.do, block/r.pair)
	t.dsd = r.takeDown(c, t.ds, tile/r.pair)
	if r.descend != nil {
		t.kt, t.flat, t.factors = c.take(r.blockK*ld/r.pair), c.take((s.queries+r.tileN)*ld), c.take(s.queries)
	}
	if s.overlap {
		t.rowQ = c.take(s.length * ld)
	}
	return t
}

// Do computes one task.
func (j *backwardJob[T]) Do(worker, task int) {
	r := j.r
	if r.wave.steps > 0 {
		j.waveStep(worker, task)
		return
	}
	row, kv := task/j.KV, task%j.KV
	t := r.backwardScratch(&carver[T]{buf: r.scratch[worker]}, &j.shape)
	clear(t.dk)
	clear(t.dv)
	for i := range r.teams {
		for step := 0; step < r.teams[i].steps && r.teams[i].kv == kv; step++ {
			j.step(&t, &r.work[worker], &r.teams[i], row, step)
		}
	}
	j.store(&t, row, kv)
}

// store writes dK and dV of a key-value head.
func (j *backwardJob[T]) store(t *backwardTile[T], row, kv int) {
	j.r.write(&j.dqkv, row*j.length, j.keyCol(kv), j.length, j.Size, t.dk, t.ld, j.factor())
	j.r.write(&j.dqkv, row*j.length, j.valueCol(kv), j.length, j.Size, t.dv, t.ld, 1)
}

// step computes dQ of one step of a team and adds its part to dK and dV.
func (j *backwardJob[T]) step(t *backwardTile[T], w *work, m *team, row, step int) {
	if m.overlaps() {
		clear(t.rowQ)
	}
	for from, to, heads := m.of(step); from < to; {
		from += j.r.enlist(w, &j.shape, row, m, from, to, heads)
		w.later = m.least(from, to) / j.r.blockK * j.r.blockK // tiles may start earlier
		for u := range w.units {
			j.begin(t, w, u, row)
		}
		if m.overlaps() {
			j.overlapping(t, w, m, row)
			continue
		}
		j.keys(t, w, m, row)
		for u := range w.units {
			q := &w.units[u]
			dq := t.dq[u*j.queries*t.ld:]
			if j.r.lower != nil {
				for i := range t.factors {
					t.factors[i] = j.factor()
				}
				j.r.settle(&j.dqkv, w, u, row*j.length+q.First, q.Step, j.queryCol(q.head), q.Count, j.Size, dq, t.ld,
					t.factors, t.flat)
				continue
			}
			j.r.writeStrip(&j.dqkv, row*j.length+q.First, q.Step, j.queryCol(q.head), q.Count, j.Size, dq,
				t.ld, j.factor())
		}
	}
	if m.overlaps() {
		j.r.writeStrip(&j.dqkv, row*j.length, 1, j.queryCol(m.heads[0]), j.length, j.Size, t.rowQ, t.ld, j.factor())
	}
}

// factor returns the derivative of the scaled scores.
func (j *backwardJob[T]) factor() T { return T(j.ScoreScale()) }

// begin loads a block of queries and of output gradients, computes delta = rowsum(dO·O) and clears dQ. Missing
// queries are zero and see nothing.
func (j *backwardJob[T]) begin(t *backwardTile[T], w *work, u, row int) {
	r, unit, words, wordsL := j.r, &w.units[u], t.ld/j.r.pair, t.led/j.r.pair
	n, step, at, col := unit.Count, unit.Step, row*j.length+unit.First, unit.head*j.Size
	first, end := u*j.queries, (u+1)*j.queries
	q, do, dq := t.q[first*wordsL:end*wordsL], t.do[first*words:end*words], t.dq[first*t.ld:end*t.ld]
	delta, lse := t.delta[first:end], t.lse[first:end]
	lead, _ := r.lead(&j.shape)
	r.readStrip(q[lead:], t.led, &j.qkv, at, step, j.queryCol(unit.head), n, j.Size)
	r.leadQueries(q, wordsL, &j.shape, unit, 0, n, w.ref)
	r.readStrip(do, t.ld, &j.dout, at, step, col, n, j.Size)
	r.readStrip(dq, t.ld, &j.out, at, step, col, n, j.Size) // O, only for delta
	r.dot(delta, do, dq, words, n, words)
	if r.descend == nil {
		clear(dq)
	}
	clear(q[n*wordsL:])
	clear(do[n*words:])
	clear(delta[n:])
	for p := 0; p < n; p += r.tileN {
		r.transpose(t.qt[(first+p)*wordsL:], q[p*wordsL:], wordsL, wordsL)
		r.transpose(t.dot[(first+p)*words:], do[p*words:], words, words)
	}
	r.down(t.qd[first*wordsL:], t.led, q, wordsL, j.queries, t.led)
	r.down(t.dod[first*words:], t.ld, do, words, j.queries, t.ld)
	for i := range lse {
		lse[i] = -negInf[T]()
		if i < n {
			if l := j.lse[unit.head*j.tokens+at+i*step]; l != negInf[T]() {
				lse[i] = l * math.Log2E
			}
		}
	}
}

// keys processes all keys of all units.
func (j *backwardJob[T]) keys(t *backwardTile[T], w *work, m *team, row int) {
	r := j.r
	lead, _ := r.lead(&j.shape)
	for len(w.units) > 0 && w.next(r.blockK, r.tileM) {
		tile := &w.tile
		r.readKeys(t.k[lead:], t.led, &j.qkv, &j.shape, row, j.keyCol(m.kv), tile)
		r.down(t.kd, t.led, t.k, t.led/r.pair, roundUp(tile.keys, r.tileM), t.led)
		if r.descend != nil {
			r.transpose(t.kt, t.kd[lead*r.pair:], t.led, t.ld)
		}
		r.leadKeys(t.k, t.led/r.pair, &j.shape, tile, w.ref)
		r.readKeys(t.v, t.ld, &j.qkv, &j.shape, row, j.valueCol(m.kv), tile)
		j.enter(w)
		if first, ok := tile.contiguous(r.tileM, j.length); ok {
			j.units(t, w, t.dk[first*t.ld:], t.dv[first*t.ld:])
			j.leave(w, m)
			continue
		}
		j.runs(tile, func(at, key, step, n int) {
			r.load(t.tileK[at*t.ld:], t.ld, t.dk[key*t.ld:], step*t.ld, n, t.ld, 1)
			r.load(t.tileV[at*t.ld:], t.ld, t.dv[key*t.ld:], step*t.ld, n, t.ld, 1)
		})
		j.units(t, w, t.tileK, t.tileV)
		j.runs(tile, func(at, key, step, n int) {
			r.load(t.dk[key*t.ld:], step*t.ld, t.tileK[at*t.ld:], t.ld, n, t.ld, 1)
			r.load(t.dv[key*t.ld:], step*t.ld, t.tileV[at*t.ld:], t.ld, n, t.ld, 1)
		})
		j.leave(w, m)
	}
}

// runs calls f for the runs of a tile's keys inside the row: n keys from key on, in tile rows from at.
func (j *backwardJob[T]) runs(tile *keyTile, f func(at, key, step, n int)) {
	for i := range tile.runs {
		s := &tile.runs[i]
		if n := min(s.Count, count(s.Strip, j.length-1)); n > 0 {
			f(s.at, s.First, s.Step, n)
		}
	}
}

// units processes one tile of keys for all units: it adds to dQ and to the tile's dK and dV.
func (j *backwardJob[T]) units(t *backwardTile[T], w *work, dk, dv []T) {
	r := j.r
	if r.descend != nil {
		lead, slope := r.lead(&j.shape)
		r.descend(*t, dk, dv, r.unitPieces(w, &j.shape, t.ld, t.led), lead-slope, r.steps(slope, j.Size),
			j.Size, T(j.scale))
		return
	}
	for u := range w.units {
		whole := w.units[u].Count == j.queries // every panel sees all keys of the tile
		for i := range w.of(u) {
			p := &w.of(u)[i]
			whole = whole && p.lo == 0 && p.hi == w.tile.keys
			if p.lo < p.hi {
				j.scores(t, u, i*r.tileN, &w.tile, p)
			}
		}
		if j.whole {
			j.products(t, u, 0, roundUp(w.units[u].Count, r.tileN), 0, w.tile.keys, dk, dv)
			continue
		}
		if whole {
			j.products(t, u, 0, j.queries, 0, w.tile.keys, dk, dv)
			continue
		}
		for i := range w.of(u) {
			switch p := &w.of(u)[i]; {
			case p.lo >= p.hi:
			case p.masked && len(w.tile.runs) == 1:
				j.stairs(t, u, i*r.tileN, &w.tile.runs[0], p, dk, dv)
			default:
				j.products(t, u, i*r.tileN, r.tileN, p.lo, p.hi, dk, dv)
			}
		}
	}
}

// scores fills the columns of one panel of unit u, queries from at on, in the tiles S and dS.
func (j *backwardJob[T]) scores(t *backwardTile[T], u, at int, keys *keyTile, p *panel) {
	r, words, wordsL := j.r, t.ld/j.r.pair, t.led/j.r.pair
	first, line := u*j.queries+at, p.lo*j.queries
	rows := roundUp(p.hi-p.lo, r.tileM)
	s, dp := t.s[line+at:], t.ds[line+at:]
	lead, slope := r.lead(&j.shape)
	k, q := t.k[p.lo*wordsL+lead-slope:], t.qt[first*wordsL+(lead-slope)*r.tileN:]
	r.mul(s, j.queries, k, wordsL, 1, q, r.tileN, rows, slope+r.words(j.Size), false)
	r.mul(dp, j.queries, t.v[p.lo*words:], words, 1, t.dot[first*words:], r.tileN, rows, r.words(j.Size), false)
	if j.limit > 0 {
		j.capScores(s, dp, rows, t.delta[first:])
	}
	if p.masked || rows > p.hi-p.lo {
		hide(s, j.queries, rows, p.lo, keys, p, r.tileN)
	}
	ds := t.ds[line+at/r.pair:]
	r.grad(t.s[line+at/r.pair:], ds, s, dp, j.queries, rows, T(j.scale), t.lse[first:], t.delta[first:])
	r.down(t.dsd[line/r.pair+r.column(at):], j.queries, ds, j.queries, rows, r.tileN)
}

// products adds the products of n queries, from at of unit u, with keys lo…hi of the tile: dV += P·dO, dK += dS·Q, dQ
// += dSᵀ·K.
func (j *backwardJob[T]) products(t *backwardTile[T], u, at, n, lo, hi int, dk, dv []T) {
	j.mulKV(t, u, at, n, lo, roundUp(hi-lo, j.r.tileM), dk, dv)
	j.mulQ(t, u, at, n, lo, hi)
}

// stairs does the same as products for a panel in which some keys are hidden from some queries, and skips most of the
// hidden part.
func (j *backwardJob[T]) stairs(t *backwardTile[T], u, at int, k *run, p *panel, dk, dv []T) {
	r := j.r
	for row := p.lo; row < p.hi; row += stair {
		if from, to := p.columns(k, row, r.group, r.tileN); from < to {
			j.mulKV(t, u, at+from, to-from, row, roundUp(min(stair, p.hi-row), r.tileM), dk, dv)
		}
	}
	n := min(stair, r.tileN)
	for q := 0; q < p.Count; q += n {
		if from, to := p.rows(k, q, n, r.group); from < to {
			j.mulQ(t, u, at+q, n, from, to)
		}
	}
}

// mulKV adds the products of n queries, from at of unit u, to dK and dV of rows rows of keys, from lo on.
func (j *backwardJob[T]) mulKV(t *backwardTile[T], u, at, n, lo, rows int, dk, dv []T) {
	r, first, line := j.r, u*j.queries+at, lo*j.queries
	lead, _ := r.lead(&j.shape)
	s, ds := t.s[line+at/r.pair:], t.ds[line+at/r.pair:]
	q, do := t.qd[first*t.led/r.pair+r.column(lead*r.pair):], t.dod[first*t.ld/r.pair:]
	for c := 0; c < j.Size; c += r.tileN {
		r.mul(dv[lo*t.ld+c:], t.ld, s, j.queries, 1, do[r.column(c):], t.ld, rows, n/r.pair, true)
		r.mul(dk[lo*t.ld+c:], t.ld, ds, j.queries, 1, q[r.column(c):], t.led, rows, n/r.pair, true)
	}
}

// mulQ adds the products of keys lo…hi to dQ of n queries, from at of unit u.
func (j *backwardJob[T]) mulQ(t *backwardTile[T], u, at, n, lo, hi int) {
	r, first := j.r, u*j.queries+at
	lead, _ := r.lead(&j.shape)
	ds, k := t.dsd[lo*j.queries/r.pair+r.column(at):], t.kd[lo*t.led/r.pair+r.column(lead*r.pair):]
	for c := 0; c < j.Size; c += r.tileN {
		r.mul(t.dq[first*t.ld+c:], t.ld, ds, 1, j.queries, k[r.column(c):], t.led, n, r.words(hi-lo), true)
	}
}
