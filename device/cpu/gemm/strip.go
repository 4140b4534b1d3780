package gemm

import (
	"unsafe"

	"anneal/device"
	"anneal/tensor"
)

// A strip is the work of one call of a kernel on tiles: a panel of up to 32 rows of a times all packed panels of b of
// a task. Words are pairs of BF16; distances are in bytes. The kernel adds runs of 32 elements to each sum, in the
// order of k. Within a run it sums the products at even and at odd positions separately, by FMA, and then adds both
// to the sum. The bits of a sum therefore do not depend on the cut of K. Denormals count as 0.
type strip struct {
	a         unsafe.Pointer // rows of 32·steps elements, lda apart
	lda       int
	b         unsafe.Pointer // panels of 16·steps rows of colStep words, strideB apart
	strideB   int
	steps     int
	panels    int
	rows      int
	from      unsafe.Pointer // initial sums, or nil for 0: rows fromRow apart, panels fromPanel
	fromRow   int
	fromPanel int
	to        unsafe.Pointer // destination
	toRow     int
	toPanel   int
	round     bool           // to BF16
	block     unsafe.Pointer // memory for rows×colStep sums, aligned
	ahead     fetch
}

// A fetch describes the cache lines that a kernel prefetches: with each step along k, four lines that are line bytes
// apart, starting at p. p then advances by step, and after each panel by panel, until the given number of panels is
// done.
type fetch struct {
	p                         uintptr
	line, step, panel, panels int
}

// strips computes a task's tile of the result, strip by strip. Each round packs as much of b as fits in the
// second-level cache, unless the task above has left it there; every strip then processes its K blocks, with its rows
// of a in the first-level cache.
//
// Rows of a that cannot be read in place are packed one block at a time. While the strips of one block are computed,
// the next block is prefetched and packed in parts. The second-level cache then holds little waiting data, which
// matters because columns of a matrix may map to the same few lines.
func (x *product[E]) strips(s *scratch[E], t, after span, packed bool) {
	c, mr := &x.cut, x.tile.mr
	if x.bias != nil {
		x.startStrip(s, t)
	}
	now := x.firstRows(t, t.i)
	buffers := [2][]E{s.a, s.a[len(s.a)/2:]}
	for part := range x.parts() {
		x.packPart(buffers[0], now, part)
	}
	for more := true; more; {
		blockB := s.b[(now.p-now.round)/c.depth*c.strideK:]
		if now.p == now.round && now.i == t.i && !packed {
			x.packRound(s.b, now, t)
		}
		next, ok := x.follow(now, t)
		if !ok {
			next = x.firstRows(after, after.i)
		}
		beyond, _ := x.follow(next, t)
		for part := range x.parts() {
			if ok {
				x.packPart(buffers[1], next, part)
			}
			i := now.i + part*mr
			if i >= now.i+now.rows {
				continue
			}
			r := &s.strip
			*r = strip{
				strideB: c.strideB * 4, steps: steps(now.k), rows: min(mr, now.i+now.rows-i),
				block: unsafe.Pointer(&s.start[0]),
			}
			r.a, r.lda = unsafe.Pointer(&buffers[0][part*mr*x.strideA()]), 4*x.strideA()
			switch {
			case x.plainStrips(now.k):
				src := x.blockA(i, now.p)
				r.a, r.lda = src.p, src.ld*2
				r.ahead = x.fetchRows(next)
			case part+1 < x.parts():
				r.ahead = x.fetchPart(next, part+1)
			default:
				r.ahead = x.fetchPart(beyond, 0)
			}
			x.runStrip(r, s, blockB, t, i-t.i, now.p == 0, now.p+now.k == c.k)
		}
		buffers[0], buffers[1] = buffers[1], buffers[0]
		now, more = next, ok
	}
}

// steps returns the number of steps of a kernel on tiles for k elements.
func steps(k int) int { return max(1, ceil(k, 32)) }

// packPanels packs a block of b, padded with zeros to whole steps.
func (x *product[E]) packPanels(b []E, p, j, k, cols int) {
	switch {
	case k == 0:
	case x.form == device.NT:
		x.packB(b, p, j, k, cols)
	default: // a few rows at a time, which memory delivers as streams
		for q := 0; q < k; q += 16 {
			x.packB(b[q/2*colStep:], p+q, j, min(16, k-q), cols)
		}
	}
	if k%32 == 0 && k > 0 {
		return
	}
	for q := range ceil(cols, colStep) {
		panel := b[q*x.cut.strideB:]
		clear(panel[ceil(k, 2)*colStep : steps(k)*16*colStep])
	}
}

// startStrip computes the initial sums of a task's columns: the bias, before scaling.
func (x *product[E]) startStrip(s *scratch[E], t span) {
	row := s.bias[:roundUp(t.cols, colStep)]
	clear(row[copy(row[:t.cols], x.bias[t.j:]):])
	if scale := E(x.dst.scale); scale != 1 {
		for i := range row {
			row[i] /= scale
		}
	}
}

// runStrip computes the strip of the task's tile that starts at row i. With the last K block the sums go to the
// result: directly, if it is FP32 or BF16 and neither accumulated nor scaled, otherwise through the running sums.
func (x *product[E]) runStrip(r *strip, s *scratch[E], b []E, t span, i int, first, last bool) {
	const blockBytes = 32 * colStep * 4
	panels := ceil(t.cols, colStep)
	row := i / x.tile.mr
	if x.cut.keep { // each block of rows is completed before the next
		row %= x.parts()
	}
	sums := s.c[row*x.cut.cols*x.tile.mr*colStep:]
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
		r.to, r.toRow, r.toPanel, r.round = x.dst.at(t.i+i, t.j), x.dst.ld*size, colStep*size,
			x.dst.dtype == tensor.BF16
		part(0, straight)
	}
	if straight == panels {
		return
	}
	r.to, r.toRow, r.toPanel, r.round = unsafe.Pointer(&sums[straight*blockBytes/4]), 4*colStep, blockBytes, false
	part(straight, panels)
	if last {
		for j := straight; j < panels; j++ {
			x.store(&x.dst, x.dst.at(t.i+i, t.j+j*colStep), &sums[j*blockBytes/4], r.rows,
				min(colStep, t.cols-j*colStep))
		}
	}
}
