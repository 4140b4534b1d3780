package gemm

import (
	"anneal/device"
	"anneal/tensor"
)

// A rowBlock is a block of a that is packed at a time for strips: the rows of one strip, or, in form TN, of four,
// because columns come from memory in whole cache lines. A block is packed in as many parts as it has strips,
// alternating with the strips of the previous block.
type rowBlock struct {
	i, rows int // of the result
	p, k    int // along K
	round   int // start of the round along K
}

// parts returns the number of strips, and of parts, of a block.
func (x *product[E]) parts() int {
	if x.form == device.TN {
		return stripsTN
	}
	return 1
}

// strideA returns the words between packed rows of a.
func (x *product[E]) strideA() int { return x.cut.strideRows() }

// firstRows returns the first block of a task's tile in the round that starts at 0.
func (x *product[E]) firstRows(t span, i int) rowBlock {
	return x.rowBlock(t, i, 0, 0)
}

func (x *product[E]) rowBlock(t span, i, p, round int) rowBlock {
	end := min(round+x.cut.deep, x.cut.k)
	return rowBlock{i: i, rows: min(x.parts()*x.tile.mr, t.i+t.rows-i), p: p, k: min(x.cut.depth, end-p), round: round}
}

// follow returns the block after b: the next one along K, the first of the next rows, or the first of the next round.
// It returns false if b is the last block of the task's tile t.
func (x *product[E]) follow(b rowBlock, t span) (rowBlock, bool) {
	end := min(b.round+x.cut.deep, x.cut.k)
	switch {
	case b.p+b.k < end:
		return x.rowBlock(t, b.i, b.p+b.k, b.round), true
	case b.i+b.rows < t.i+t.rows:
		return x.rowBlock(t, b.i+b.rows, b.round, b.round), true
	case end < x.cut.k:
		return x.rowBlock(t, t.i, end, end), true
	}
	return b, false
}

// plainStrips reports whether kernels can read k elements of rows of a in place: whole steps, no conversion, and rows
// that do not map to the same few lines of the first-level cache.
func (x *product[E]) plainStrips(k int) bool {
	return x.form != device.TN && x.a.dtype == tensor.BF16 && k%32 == 0 && k > 0 && gcd(x.a.ld*2, 4096) <= x.tile.maxK*4
}

// portion returns the range of K elements of a part of a block, relative to the block.
func (x *product[E]) portion(b rowBlock, part int) (from, to int) {
	size := roundUp(ceil(b.k, x.parts()), 32)
	return min(part*size, b.k), min((part+1)*size, b.k)
}

// packPart packs a part of a block unless it is read in place; the last part adds the zeros up to whole steps.
func (x *product[E]) packPart(to []E, b rowBlock, part int) {
	if x.plainStrips(b.k) {
		return
	}
	ld := x.strideA()
	if words := b.k / 2; part == 0 && (b.k%32 != 0 || b.k == 0) {
		for r := range b.rows {
			clear(to[r*ld+words : r*ld+16*steps(b.k)])
		}
	}
	from, end := x.portion(b, part)
	switch src := x.blockA(b.i, b.p+from); {
	case from == end:
	case x.form == device.TN:
		x.pack.columns(&to[from/2], ld, src, end-from, b.rows, to[stripsTN*x.tile.mr*ld:])
	default:
		x.pack.copyRows(&to[0], ld, src, b.rows, end)
	}
}

// fetchPart returns the prefetches of the part that is packed next: four lines per step. Columns have as many side by
// side.
func (x *product[E]) fetchPart(b rowBlock, part int) fetch {
	from, end := x.portion(b, part)
	if x.form != device.TN {
		return x.fetchRows(b)
	}
	s := x.blockA(b.i, b.p+from)
	return fetch{p: uintptr(s.p), line: 64, step: s.ld * s.dtype.Size(), panels: max(1, ceil(end-from, steps(b.k)))}
}

// fetchRows returns the prefetches of a strip's rows at a K block, four lines per step: eight panels fetch all of
// them.
func (x *product[E]) fetchRows(b rowBlock) fetch {
	s := x.blockA(b.i, b.p)
	ld := s.ld * s.dtype.Size()
	return fetch{p: uintptr(s.p), line: ld, step: 64, panel: 4*ld - 64*steps(b.k), panels: 8}
}

// packRound packs the blocks of b of one round.
func (x *product[E]) packRound(to []E, b rowBlock, t span) {
	c := &x.cut
	end := min(b.round+c.deep, c.k)
	for p := b.round; p == b.round || p < end; p += c.depth {
		x.packPanels(to[(p-b.round)/c.depth*c.strideK:], p, t.j, min(c.depth, end-p), t.cols)
	}
}
