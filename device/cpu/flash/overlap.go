package flash

import "anneal/device"

// Where blocks of queries of a graph overlap, as the branches of LongNet do, the sums of all of a row's queries are kept while block
// after block adds its keys: one softmax over all of them. Backward then needs nothing but its log-sum-exp, as always, and the
// gradient goes through the shares of the branches exactly. A head's row is one task. Memory: E+2 numbers per query and worker.

// overlapping computes one head of a row.
func (j *forwardJob[T]) overlapping(t *forwardTile[T], w *work, m *team, row int) {
	r, head := j.r, m.heads[0]
	clear(t.rowO)
	clear(t.rowL)
	for i := range t.rowM {
		t.rowM[i] = lowest[T]()
	}
	for b := range m.blocks - m.first {
		if !r.enlist(w, &j.shape, row, m, b) {
			continue
		}
		q := w.units[0].Strip
		j.begin(t, w, 0, row)
		j.clear(t, 0)
		r.load(t.o, t.ld, t.rowO[(q.First-j.from)*t.ld:], q.Step*t.ld, q.Count, t.ld, 1)
		for i := range q.Count {
			at := q.First - j.from + i*q.Step
			t.m[i], t.l[i] = t.rowM[at], t.rowL[at]
		}
		j.keys(t, w, m, row)
		r.load(t.rowO[(q.First-j.from)*t.ld:], q.Step*t.ld, t.o, t.ld, q.Count, t.ld, 1)
		for i := range q.Count {
			at := q.First - j.from + i*q.Step
			t.rowM[at], t.rowL[at] = t.m[i], t.l[i]
		}
	}
	for at := 0; at < j.length-j.from; at += j.queries {
		q := device.Strip{First: j.from + at, Step: 1, Count: min(j.queries, j.length-j.from-at)}
		j.finish(head, row, q, t.rowO[at*t.ld:], t.ld, t.rowM[at:], t.rowL[at:])
	}
}
