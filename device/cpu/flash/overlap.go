package flash

import "anneal/device"

// If blocks of queries of a graph overlap, like the branches of LongNet, the sums of all queries of a row are kept
// while each block adds its keys: one softmax over all of them. Backward then needs only the log-sum-exp, as usual,
// and the gradient through the shares of the branches is exact. A head's row is one task. Memory: E+2 numbers per
// query and worker.

// overlapping computes one head of a row.
func (j *forwardJob[T]) overlapping(t *forwardTile[T], w *work, m *team, row int) {
	r, head := j.r, m.heads[0]
	clear(t.rowO)
	clear(t.rowL)
	for i := range t.rowM {
		t.rowM[i] = lowest[T]()
	}
	for from, to, heads := m.of(0); from < to; {
		from += r.enlist(w, &j.shape, row, m, from, to, heads)
		for u := range w.units {
			j.begin(t, w, u, row)
			j.clear(t, u)
			first, q := u*j.queries, w.units[u].Strip
			r.turn(t.o[first*t.ld:], t.rowO[(q.First-j.from)*t.ld:], w, u, t.ld, q.Step*t.ld, t.flat)
			for i := range q.Count {
				at := q.First - j.from + i*q.Step
				t.m[first+i], t.l[first+i] = t.rowM[at], t.rowL[at]
			}
		}
		j.keys(t, w, m, row)
		for u := range w.units {
			first, q := u*j.queries, w.units[u].Strip
			r.load(t.rowO[(q.First-j.from)*t.ld:], q.Step*t.ld, r.upright(t.flat, t.o[first*t.ld:], t.ld, q.Count),
				t.ld, q.Count, t.ld, 1)
			for i := range q.Count {
				at := q.First - j.from + i*q.Step
				t.rowM[at], t.rowL[at] = t.m[first+i], t.l[first+i]
			}
		}
	}
	for at := 0; at < j.length-j.from; at += j.queries {
		q := device.Strip{First: j.from + at, Step: 1, Count: min(j.queries, j.length-j.from-at)}
		j.divide(head, row, q, t.rowM[at:], t.rowL[at:])
		j.finish(head, row, q, t.rowO[at*t.ld:], t.ld, t.rowL[at:])
	}
}

// overlapping adds the units of w to dQ of the row.
func (j *backwardJob[T]) overlapping(t *backwardTile[T], w *work, m *team, row int) {
	move := func(load bool) {
		for u := range w.units {
			q, dq := w.units[u].Strip, t.dq[u*j.queries*t.ld:]
			if load {
				j.r.turn(dq, t.rowQ[q.First*t.ld:], w, u, t.ld, q.Step*t.ld, t.flat)
			} else {
				j.r.load(t.rowQ[q.First*t.ld:], q.Step*t.ld, j.r.upright(t.flat, dq, t.ld, q.Count), t.ld,
					q.Count, t.ld, 1)
			}
		}
	}
	move(true)
	j.keys(t, w, m, row)
	move(false)
}
