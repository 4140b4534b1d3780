package gemm

import "anneal/device"

// A span is the part of the result that a task computes.
type span struct{ i, j, rows, cols int }

func (x *product[E]) span(task int) span {
	i, j := task/x.across*x.rows, task%x.across*x.cols
	return span{i, j, min(x.rows, x.m-i), min(x.cols, x.n-j)}
}

// Do computes one task's tile of the result: for each K block in order, panels of b, then blocks of a against all of them.
func (x *product[E]) Do(worker, task int) {
	s := &x.scratch[worker]
	t := x.span(task)
	after := x.span(min(task+len(x.scratch), x.tasks-1)) // probably this worker's next
	for p := 0; ; p += x.depth {
		k := min(x.depth, x.k-p)
		words := (k + x.group - 1) / x.group
		last := p+k == x.k
		if k > 0 {
			x.packB(s, p, t.j, k, t.cols)
		}
		next, q := t, p+k // the K block that follows
		if last {
			next, q = after, 0
		}
		later := x.trailB(q, next.j, next.cols, words)
		for i := 0; i < t.rows; i += maxA {
			rows := min(maxA, t.rows-i)
			if k > 0 {
				x.packA(s, t.i+i, p, rows, k)
			}
			ahead := x.trailA(next.i, q, min(maxA, next.rows), words)
			if i+maxA < t.rows {
				ahead = x.trailA(t.i+i+maxA, p, min(maxA, t.rows-i-maxA), words)
			}
			x.multiply(s, t, i, rows, words, p == 0, last, &ahead, &later)
		}
		if last {
			return
		}
	}
}

func (x *product[E]) blockA(i, p int) source {
	if x.form == device.TN {
		return x.a.at(p, i)
	}
	return x.a.at(i, p)
}

func (x *product[E]) blockB(p, j int) source {
	if x.form == device.NT {
		return x.b.at(j, p)
	}
	return x.b.at(p, j)
}

func (x *product[E]) packA(s *scratch[E], i, p, rows, k int) {
	if x.form == device.TN {
		x.pack.panels(&s.a[0], x.tile.mr, x.tile.mr*maxK, x.blockA(i, p), k, rows)
	} else {
		x.pack.copyRows(&s.a[0], strideRows, x.blockA(i, p), rows, k)
	}
}

func (x *product[E]) packB(s *scratch[E], p, j, k, cols int) {
	if x.form != device.NT {
		x.pack.panels(&s.b[0], ColStep, stridePanelB, x.blockB(p, j), k, cols)
		return
	}
	for q := 0; q < cols; q += ColStep {
		x.pack.transpose(&s.b[q/ColStep*stridePanelB], ColStep, x.blockB(p, j+q), min(ColStep, cols-q), k)
	}
}

// multiply adds the product of the packed block of a, which holds the rows of the task's tile from i on, and the packed panels of
// b to the running sums. With the last K block the sums, still in the first-level cache, go to the result.
func (x *product[E]) multiply(s *scratch[E], t span, i, rows, words int, first, last bool, ahead, later *trail) {
	mr := x.tile.mr
	main, rest, lda, step, row := x.tile.rows, x.tile.rows4, strideRows, mr*strideRows, strideRows
	if x.form == device.TN {
		main, rest, lda, step, row = x.tile.cols, x.tile.cols4, mr, mr*maxK, 1
	}
	add := 1
	if first {
		add = 0
	}
	for j := 0; j < t.cols; j += ColStep {
		b := &s.b[j/ColStep*stridePanelB]
		for r := 0; r < rows; r += mr {
			a := &s.a[r/mr*step]
			c := &s.c[0]
			if !first || !last { // the sums wait for the next K block
				c = &s.c[((i+r)/mr*(maxN/ColStep)+j/ColStep)*mr*ColStep]
			}
			p, ps := ahead.portion()
			q, qs := later.portion()
			if high := rows - r; high > mr-RowStep {
				main(c, ColStep, a, lda, b, ColStep, words, add, p, q, ps, qs)
			} else {
				for h := 0; h < high; h += RowStep {
					rest(at(c, h*ColStep), ColStep, at(a, h*row), lda, b, ColStep, words, add, p, q, ps, qs)
				}
			}
			if last {
				x.store.put(x.dst.at(t.i+i+r, t.j+j), c, min(mr, rows-r), min(ColStep, t.cols-j))
			}
		}
	}
}
