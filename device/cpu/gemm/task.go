package gemm

import "anneal/device"

// Do computes one task's tile of the result. For each K block in order it packs the panels of b, unless the task
// above has left them, and multiplies blocks of a by all of them. The deal decides which task it is.
func (x *product[E]) Do(worker, _ int) {
	s, c := &x.scratch[worker], &x.cut
	column, row, ok := x.deal.take(s.column)
	if !ok {
		panic("gemm: more tasks requested than exist")
	}
	s.column = column
	t := c.span(column, row)
	if c.mirrored(t) {
		return
	}
	after := c.span(x.deal.after(column, row))
	packed := s.packed == column
	if c.keep {
		s.packed = column
	}
	switch {
	case x.tile.strip != nil:
		x.strips(s, t, after, packed)
	case x.tile.outer != nil:
		x.outers(s, t, packed)
	default:
		x.blocks(s, t, after, packed)
	}
}

// blocks computes a task's tile of the result with kernels that compute one register tile per call.
func (x *product[E]) blocks(s *scratch[E], t, after span, packed bool) {
	c := &x.cut
	high := maxA
	if x.form == device.TN {
		high = rowsTN
	}
	for p := 0; ; p += c.depth {
		k := min(c.depth, c.k-p)
		words := ceil(k, c.group)
		b := s.b
		if c.keep {
			b = s.b[p/c.depth*c.strideK:]
		}
		if k > 0 && !packed {
			x.packB(b, p, t.j, k, t.cols)
		}
		first, last := p == 0, p+k == c.k
		next, q := t, p+k // the next K block
		if last {
			next, q = after, 0
		}
		later := x.trailB(q, next.j, next.cols, words)
		if c.keep && next.j == t.j && (packed || last) { // already packed
			later = packedTrail(s.b[q/c.depth*c.strideK:][:c.strideK], words)
		}
		for i := 0; i < t.rows; i += high {
			rows := min(high, t.rows-i)
			a, lda := &s.a[0], c.strideRows()
			switch {
			case k > 0 && x.plainA() && rows%x.tile.mr == 0:
				// nothing to convert, and kernels do not read past the rows
				a, lda = (*E)(x.blockA(t.i+i, p).p), x.a.ld
			case k > 0:
				x.packA(s.a, t.i+i, p, rows, k)
			}
			ahead := x.trailA(next.i, q, min(high, next.rows), words)
			if i+high < t.rows {
				ahead = x.trailA(t.i+i+high, p, min(high, t.rows-i-high), words)
			}
			x.multiply(a, lda, b, s, t, i, rows, words, first, last, &ahead, &later)
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

func (x *product[E]) packA(a []E, i, p, rows, k int) {
	if x.form == device.TN {
		x.pack.panels(&a[0], rowsTN, 0, x.blockA(i, p), k, rows)
	} else {
		x.pack.copyRows(&a[0], x.cut.strideRows(), x.blockA(i, p), rows, k)
	}
}

func (x *product[E]) packB(b []E, p, j, k, cols int) {
	if x.form != device.NT {
		x.pack.panels(&b[0], colStep, x.cut.strideB, x.blockB(p, j), k, cols)
		return
	}
	for q := 0; q < cols; q += colStep {
		x.pack.transpose(&b[q/colStep*x.cut.strideB], colStep, x.blockB(p, j+q), min(colStep, cols-q), k)
	}
}

// plainA reports whether kernels can read a in place: rows that need no conversion and do not map to the same few
// lines of a cache. A kernel reads the same columns of all its rows at a time, a word after the other: those lines
// must stay in the first level.
func (x *product[E]) plainA() bool {
	stride := x.a.ld * x.a.dtype.Size()
	return x.form != device.TN && x.a.dtype == dtypeOf(*new(E)) && x.a.round == x.a.dtype &&
		stride%crowded != 0 && !x.first.Crowded(x.tile.mr, stride)
}

// multiply adds the product of a block of a (the rows of the task's tile from i on, lda words apart) and the packed
// panels of b to the running sums. With the last K block the sums go to the result: directly, or, if they must be
// converted, scaled or cut, from their tile, which is still in the first-level cache.
func (x *product[E]) multiply(a *E, lda int, b []E, s *scratch[E], t span, i, rows, words int, first, last bool,
	ahead, later *trail) {
	mr := x.tile.mr
	main, rest, row := x.tile.rows, x.tile.rows4, lda
	if x.form == device.TN {
		main, rest, lda, row = x.tile.cols, x.tile.cols4, rowsTN, x.tile.run
	}
	add := addSums
	if first && x.bias == nil {
		add = 0
	}
	tiles := i / mr * x.cut.cols // above these rows
	for j := 0; j < t.cols; j += colStep {
		panel := &b[j/colStep*x.cut.strideB]
		if first && x.bias != nil {
			x.startSums(s.start, t.j+j)
		}
		beside := trail{} // the next columns of the result
		if last && j+colStep < t.cols {
			beside = x.resultTrail(span{t.i + i, t.j + j + colStep, rows, min(colStep, t.cols-j-colStep)}, words)
		}
		tile := tiles + j/colStep
		for r := 0; r < rows; r, tile = r+mr, tile+x.cut.cols {
			block := at(a, r*row)
			sums := &s.c[0]
			if !first || !last { // the sums are needed again for the next K block
				sums = &s.c[tile*mr*colStep]
			}
			from := sums
			if first && x.bias != nil {
				from = &s.start[0]
			}
			p, ps := ahead.portion()
			behind := later
			if beside.left > 0 {
				behind = &beside
			}
			q, qs := behind.portion()
			high := rows - r
			switch {
			case last && x.direct && high >= mr && j+colStep <= t.cols:
				main((*E)(x.dst.at(t.i+i+r, t.j+j)), x.dst.ld, from, block, lda, panel, words,
					add|x.addTo, p, q, ps, qs)
				continue
			case high > mr-rowStep:
				main(sums, colStep, from, block, lda, panel, words, add, p, q, ps, qs)
			default:
				for h := 0; h < high; h += rowStep {
					part := at(sums, h*colStep)
					rest(part, colStep, at(from, h*colStep), at(block, h*row), lda, panel, words, add, p, q, ps, qs)
				}
			}
			if last {
				x.store(&x.dst, x.dst.at(t.i+i+r, t.j+j), sums, min(mr, high), min(colStep, t.cols-j))
			}
		}
	}
}

// startSums fills a tile with the initial sums of the columns from j on: the bias, before scaling.
func (x *product[E]) startSums(tile []E, j int) {
	row := tile[:copy(tile[:colStep], x.bias[j:])]
	if scale := E(x.dst.scale); scale != 1 {
		for i := range row {
			row[i] /= scale
		}
	}
	for i := colStep; i < len(tile); i += colStep {
		copy(tile[i:], row)
	}
}
