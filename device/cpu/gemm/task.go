package gemm

import (
	"unsafe"

	"anneal/device"
)

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
	high := c.rowsOfA(x.form)
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
			case k > 0 && x.plain && rows%x.tile.mr == 0:
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
		x.pack.panels(&a[0], x.cut.side, x.cut.side*x.cut.maxK, x.blockA(i, p), k, rows)
	} else {
		x.pack.copyRows(&a[0], x.cut.strideRows(), x.blockA(i, p), rows, k)
	}
}

func (x *product[E]) packB(b []E, p, j, k, cols int) {
	wide := x.cut.panel
	stride := x.cut.strideB / colStep * wide
	if x.form != device.NT {
		x.pack.panels(&b[0], wide, stride, x.blockB(p, j), k, cols)
		return
	}
	for q := 0; q < cols; q += wide {
		x.pack.transpose(&b[q/wide*stride], wide, x.blockB(p, j+q), min(wide, cols-q), k)
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
// converted, scaled or cut, from their tiles, which are still in the cache.
func (x *product[E]) multiply(a *E, lda int, b []E, s *scratch[E], t span, i, rows, words int, first, last bool,
	ahead, later *trail) {
	mr, size := x.tile.mr, int(unsafe.Sizeof(*a))
	main, row, aBelow := x.tile.rows, lda, mr*lda
	if x.form == device.TN {
		main, lda, row, aBelow = x.tile.cols, x.cut.side, x.tile.run, x.cut.belowTN()
	}
	add := addSums
	if first && x.bias == nil {
		add = 0
	}
	sums, beside, below := 0, 0, mr*colStep // of a tile, and distances to the next tiles
	if !first || !last {                    // the sums are needed again for the next K block
		sums, beside, below = i*x.cut.cols*colStep, mr*colStep, x.cut.cols*mr*colStep
	}
	v := &s.visit
	v.lda, v.k, v.beside = lda*size, words, x.cut.strideB*x.cut.panel/colStep*size
	whole, rest, reach := rows/mr, rows%mr, max(1, words/4)
	tiles, portions := ceil(rows, mr), ceil(rows, reach)
	var right trail // the next columns of the result
	for j := 0; j < t.cols; j, sums = j+colStep, sums+beside {
		if right.left = 0; last && j+colStep < t.cols {
			x.resultTrail(&right, t.i+i, t.j+j+colStep, min(colStep, t.cols-j-colStep), reach, portions)
		}
		v.prefetch(tiles, ahead, &right, later)
		v.a, v.aBelow, v.b = unsafe.Pointer(a), aBelow*size, unsafe.Pointer(&b[j/colStep*x.cut.strideB])
		v.c, v.cBelow = unsafe.Pointer(&s.c[sums]), below*size
		if first && x.bias != nil {
			x.startSums(s.start, t.j+j)
			v.c, v.cBelow = unsafe.Pointer(&s.start[0]), 0
		}
		v.to, v.ld, v.toBelow, v.add = unsafe.Pointer(&s.c[sums]), colStep*size, below*size, add
		direct := last && x.direct && j+colStep <= t.cols
		if direct {
			v.to, v.ld, v.toBelow, v.add = x.dst.at(t.i+i, t.j+j), x.dst.ld*size, mr*x.dst.ld*size, add|x.addTo
		}
		if v.tiles = whole; whole > 0 {
			main(v)
		}
		if rest > 0 {
			v.to, v.ld, v.add = unsafe.Pointer(&s.c[sums+whole*below]), colStep*size, add
			x.multiplyRest(v, rest, row*size, main)
		}
		stored := 0
		if direct {
			stored = whole
		}
		for tile := stored; last && tile < tiles; tile++ {
			r := tile * mr
			x.store(&x.dst, x.dst.at(t.i+i+r, t.j+j), &s.c[sums+tile*below], min(mr, rows-r), min(colStep, t.cols-j))
		}
	}
}

// multiplyRest computes the rows below the whole tiles of a visit, rowBytes apart in a: with the main kernel, which
// computes more of them, or in tiles of rowStep rows.
func (x *product[E]) multiplyRest(v *visit, rows, rowBytes int, main column) {
	v.a, v.c = unsafe.Add(v.a, v.tiles*v.aBelow), unsafe.Add(v.c, v.tiles*v.cBelow)
	f := v.ahead[v.tiles]
	if v.tiles = 1; rows > x.tile.mr-rowStep {
		v.ahead[0] = f
		main(v)
		return
	}
	rest := x.tile.rows4
	if x.form == device.TN {
		rest = x.tile.cols4
	}
	v.tiles, v.aBelow = ceil(rows, rowStep), rowStep*rowBytes
	v.toBelow = rowStep * v.ld
	if v.cBelow != 0 {
		v.cBelow = rowStep * v.ld
	}
	for tile := range v.tiles {
		v.ahead[tile] = f
	}
	rest(v)
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
