package gemm

import (
	"unsafe"

	"anneal/device"
	"anneal/tensor"
)

// A strip is what a kernel on tiles computes in one call: a panel of up to 32 rows of a times all the packed panels of b of a task.
// Words are pairs of BF16; distances are in bytes. The kernel adds to each sum, in the order of k, runs of 32 elements: within
// a run the products at even and at odd places are added up apart, by FMA, and then both to the sum. So the bits of a sum do not
// depend on how K is cut. Denormals count as 0.
type strip struct {
	a         unsafe.Pointer // rows of 32·steps elements, lda apart
	lda       int
	b         unsafe.Pointer // panels of 16·steps rows of colStep words, strideB apart
	strideB   int
	steps     int
	panels    int
	rows      int
	from      unsafe.Pointer // what the sums start from, or nil for 0: rows fromRow apart, panels fromPanel
	fromRow   int
	fromPanel int
	to        unsafe.Pointer // where they go
	toRow     int
	toPanel   int
	round     bool           // to BF16
	block     unsafe.Pointer // room for rows×colStep sums, aligned
	ahead     fetch
}

// A fetch says which cache lines a kernel asks for meanwhile, hints all: with each step along k four that lie line bytes apart, from p on;
// then p moves on by step, and from panel to panel by panel, until so many panels are done.
type fetch struct {
	p                         uintptr
	line, step, panel, panels int
}

// strips computes a task's tile of the result, a strip at a time. In each round it packs as deep a part of b as stays in the
// second-level cache, unless the task above left it; then strip after strip goes over its K blocks, whose rows of a stay in the first level.
func (x *product[E]) strips(s *scratch[E], t, after span, packed bool) {
	c, mr := &x.cut, x.tile.mr
	if x.bias != nil {
		x.startStrip(s, t)
	}
	for round := 0; round == 0 || round < c.k; round += c.deep {
		end := min(round+c.deep, c.k)
		for p := round; !packed && (p == 0 || p < end); p += c.depth {
			x.packPanels(s.b[(p-round)/c.depth*c.strideK:], p, t.j, min(c.depth, end-p), t.cols)
		}
		for i := 0; i < t.rows; i += mr {
			for p := round; p == round || p < end; p += c.depth {
				k := min(c.depth, end-p)
				r := &s.strip
				*r = strip{strideB: c.strideB * 4, steps: steps(k), rows: min(mr, t.rows-i), block: unsafe.Pointer(&s.start[0])}
				r.a, r.lda = x.rowsOfStrip(s, t.i+i, p, r.rows, k)
				switch {
				case p+k < end:
					r.ahead = x.fetchA(t.i+i, p+k, r.steps)
				case i+mr < t.rows:
					r.ahead = x.fetchA(t.i+i+mr, round, r.steps)
				case end < c.k:
					r.ahead = x.fetchA(t.i, end, r.steps)
				default:
					r.ahead = x.fetchA(after.i, 0, r.steps)
				}
				x.runStrip(r, s, s.b[(p-round)/c.depth*c.strideK:], t, i, p == 0, p+k == c.k)
			}
		}
	}
}

// steps returns the number of steps that a kernel on tiles takes for k elements.
func steps(k int) int { return max(1, ceil(k, 32)) }

// packPanels packs a block of b, with zeros up to whole steps.
func (x *product[E]) packPanels(b []E, p, j, k, cols int) {
	if k > 0 {
		x.packB(b, p, j, k, cols)
	}
	if k%32 == 0 && k > 0 {
		return
	}
	for q := range ceil(cols, colStep) {
		panel := b[q*x.cut.strideB:]
		clear(panel[ceil(k, 2)*colStep : steps(k)*16*colStep])
	}
}

// rowsOfStrip returns where rows rows of a lie for a kernel, and the bytes between them: in place, if they need not be converted or
// filled up with zeros and do not crowd the same few lines of the first-level cache, else packed.
func (x *product[E]) rowsOfStrip(s *scratch[E], i, p, rows, k int) (unsafe.Pointer, int) {
	src := x.blockA(i, p)
	if x.plainStrips() && k%32 == 0 && k > 0 {
		return src.p, src.ld * 2
	}
	ld := x.tile.maxK + 16
	if k%32 != 0 || k == 0 {
		for r := range rows {
			clear(s.a[r*ld+k/2 : r*ld+steps(k)*16])
		}
	}
	switch {
	case k == 0:
	case x.form == device.TN:
		x.pack.columns(&s.a[0], ld, src, k, rows, s.a[x.tile.mr*ld:])
	default:
		x.pack.copyRows(&s.a[0], ld, src, rows, k)
	}
	return unsafe.Pointer(&s.a[0]), 4 * ld
}

// plainStrips reports whether kernels can read whole steps of a where they lie.
func (x *product[E]) plainStrips() bool {
	return x.form != device.TN && x.a.dtype == tensor.BF16 && gcd(x.a.ld*2, 4096) <= x.tile.maxK*4
}

// startStrip prepares what the sums of a task's columns start from: the bias, before sums are scaled.
func (x *product[E]) startStrip(s *scratch[E], t span) {
	row := s.bias[:roundUp(t.cols, colStep)]
	clear(row[copy(row[:t.cols], x.bias[t.j:]):])
	if scale := E(x.dst.scale); scale != 1 {
		for i := range row {
			row[i] /= scale
		}
	}
}

// runStrip computes the strip of the task's tile that begins at row i. With the last K block the sums go to the result: straight, if
// that is FP32 or BF16 and neither added to nor scaled, or by way of the running sums.
func (x *product[E]) runStrip(r *strip, s *scratch[E], b []E, t span, i int, first, last bool) {
	const blockBytes = 32 * colStep * 4
	panels := ceil(t.cols, colStep)
	sums := s.c
	if !x.cut.keep { // else the strip is complete before the next
		sums = s.c[i/x.tile.mr*x.cut.cols*x.tile.mr*colStep:]
	}
	straight := 0 // panels
	if last && !x.dst.add && x.dst.scale == 1 && x.dst.dtype != tensor.F16 {
		straight = t.cols / colStep
	}
	size := x.dst.dtype.Size()
	part := func(from, to int) { // panels
		r.b, r.panels = unsafe.Pointer(&b[from*x.cut.strideB]), to-from
		switch {
		case !first:
			r.from, r.fromRow, r.fromPanel = unsafe.Pointer(&sums[from*blockBytes/4]), 4*colStep, blockBytes
		case x.bias != nil:
			r.from, r.fromRow, r.fromPanel = unsafe.Pointer(&s.bias[from*colStep]), 0, 4*colStep
		}
		x.tile.strip(r)
	}
	if straight > 0 {
		r.to, r.toRow, r.toPanel, r.round = x.dst.at(t.i+i, t.j), x.dst.ld*size, colStep*size, x.dst.dtype == tensor.BF16
		part(0, straight)
	}
	if straight == panels {
		return
	}
	r.to, r.toRow, r.toPanel, r.round = unsafe.Pointer(&sums[straight*blockBytes/4]), 4*colStep, blockBytes, false
	part(straight, panels)
	if last {
		for j := straight; j < panels; j++ {
			x.store(&x.dst, x.dst.at(t.i+i, t.j+j*colStep), &sums[j*blockBytes/4], r.rows, min(colStep, t.cols-j*colStep))
		}
	}
}

// fetchA asks for the strip of a that follows, four lines with every step: in eight panels it is all there.
func (x *product[E]) fetchA(i, p, steps int) fetch {
	s := x.blockA(i, p)
	ld := s.ld * s.dtype.Size()
	f := fetch{p: uintptr(s.p), line: ld, step: 64, panel: 4*ld - 64*steps, panels: 8}
	if x.form == device.TN {
		f.step, f.panel = 4*ld, 0
	}
	return f
}
