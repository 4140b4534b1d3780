package gemm

import (
	"unsafe"

	"anneal/device"
	"anneal/tensor"
)

// An outerKernel multiplies a panel of up to mr rows of a, packed as k rows of colStep words, by packed panels of b of
// a task, strideB bytes apart. To the sums it adds those at from, unless that is nil, and then, if add is not 0, those
// at to, where it stores them. The other parameters are the bytes between rows and between panels of both.
type outerKernel func(a, b *float32, strideB, k, panels, rows int, from unsafe.Pointer, fromRow, fromPanel int,
	to unsafe.Pointer, toRow, toPanel, add int)

// outers computes a task's tile of the result by outer products: for each K block in order it packs the panels of b,
// unless the task above has left them, and goes down the rows, packing a panel of a for each.
func (x *product[E]) outers(s *scratch[E], t span, packed bool) {
	c := &x.cut
	if x.bias != nil {
		x.startStrip(s, t)
	}
	for p := 0; ; p += c.depth {
		k := min(c.depth, c.k-p)
		b := s.b
		if c.keep {
			b = s.b[p/c.depth*c.strideK:]
		}
		if k > 0 && !packed {
			x.packB(b, p, t.j, k, t.cols)
		}
		for i := 0; i < t.rows; i += c.mr {
			rows := min(c.mr, t.rows-i)
			if k > 0 {
				x.packOuter(s.a, t.i+i, p, rows, k)
			}
			x.outer(s, b, span{t.i + i, t.j, rows, t.cols}, i/c.mr, k, p == 0, p+k == c.k)
		}
		if p+k == c.k {
			return
		}
	}
}

// packOuter packs rows of a down a panel, k rows of as many words.
func (x *product[E]) packOuter(a []E, i, p, rows, k int) {
	if x.form == device.TN {
		x.pack.panels(&a[0], colStep, 0, x.blockA(i, p), k, rows)
		return
	}
	x.pack.transpose(&a[0], colStep, x.blockA(i, p), rows, k)
}

// outer multiplies the packed panel of a by all panels of b of the task. The sums are those of part of the result, and
// between K blocks they are in the task's tile, at the given row of blocks. With the last K block they go to the
// result: directly, if they are whole panels of FP32 and not scaled.
func (x *product[E]) outer(s *scratch[E], b []E, part span, row, k int, first, last bool) {
	const rowBytes = colStep * 4
	panels, straight, size := ceil(part.cols, colStep), 0, x.tile.mr*colStep
	if last && x.dst.dtype == tensor.F32 && x.dst.scale == 1 {
		straight = part.cols / colStep
	}
	sums := s.c[row*x.cut.cols*size:]
	multiply := func(from, to int, dst unsafe.Pointer, dstRow, dstPanel, add int) {
		var start unsafe.Pointer
		startRow, startPanel := 0, 0
		switch {
		case !first:
			start, startRow, startPanel = unsafe.Pointer(&sums[from*size]), rowBytes, 4*size
		case x.bias != nil:
			start, startPanel = unsafe.Pointer(&s.bias[from*colStep]), rowBytes
		}
		x.tile.outer((*float32)(unsafe.Pointer(&s.a[0])), (*float32)(unsafe.Pointer(&b[from*x.cut.strideB])),
			4*x.cut.strideB, k, to-from, part.rows, start, startRow, startPanel, dst, dstRow, dstPanel, add)
	}
	if straight > 0 {
		add := 0
		if x.dst.add {
			add = 1
		}
		multiply(0, straight, x.dst.at(part.i, part.j), 4*x.dst.ld, rowBytes, add)
	}
	if straight == panels {
		return
	}
	multiply(straight, panels, unsafe.Pointer(&sums[straight*size]), rowBytes, 4*size, 0)
	if !last {
		return
	}
	for j := straight; j < panels; j++ {
		x.store(&x.dst, x.dst.at(part.i, part.j+j*colStep), &sums[j*size], part.rows, min(colStep, part.cols-j*colStep))
	}
}
