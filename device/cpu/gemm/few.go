package gemm

import (
	"unsafe"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/tensor"
)

// Products of few rows by the transpose of b, as in generating token by token, read all of b for very little
// arithmetic: packing b would take longer than reading it. Their kernels read b in place and transpose its words in
// registers. The results equal those of other kernels, bit for bit: each element is summed in the order of k, in
// blocks of the same depth.

// few is a kernel that computes rows×cols sums of products:
//
//	c[i·colStep+j] = Σ_p a[p·rows+i] · b(j, p)
//
// where b(j, p) is word p of row j of b, whose rows are ldb elements apart. It reads 16·steps bytes of each row. With
// add it adds to c. It also prefetches as many bytes from next on as it reads of b. spare is memory for spareWords
// words and a K block of b in FP32. If b is blocked, b points to a block, ldb is the first of its columns to read, and
// steps is the number of columns.
type few[E tensor.Number] func(c, a *E, rows int, b unsafe.Pointer, ldb, steps, add int, next uintptr, spare *E)

// A fewKernel is a kernel with the shape that it takes.
type fewKernel[E tensor.Number] struct {
	run  few[E]
	rows int // at most
	step int // the rows it computes are a multiple of it
	cols int // per call; divides colStep
}

// fewKernels are the kernels for one kind of b, those for fewer rows first.
type fewKernels[E tensor.Number] struct {
	list []fewKernel[E]
	step int // k must be a multiple of it
}

// fewSteps is the number of bytes of a row of b per step, fewRows the largest number of rows of a.
const (
	fewSteps   = 16
	fewRows    = 16
	spareWords = 1024
)

// A fewGroup is the rows of a product that one kernel computes together.
type fewGroup[E tensor.Number] struct {
	kernel    *fewKernel[E]
	from, m   int // rows of the product
	rows, pad int // rows of the kernel, and rows of the kernels of earlier groups
}

// A fewProduct is a product of few rows in progress. Each worker processes panels of colStep columns that follow each
// other in memory, so that it prefetches the data that it reads next. A group after the first reads b from the cache.
type fewProduct[E tensor.Number] struct {
	x       *product[E]
	groups  [fewRows]fewGroup[E]
	used    int // of groups
	rows    int // of all groups
	cols    int // the most columns per call of a kernel
	m, n, k int
	depth   int // of a K block
	words   int // of k
	panels  int // of the result
	a       []E // for each group [words, rows]
}

// runFew computes the product that x is set up for, if it has few rows and there are kernels for it.
func (x *product[E]) runFew(p *pool.Pool, m, n, k int) bool {
	if x.form != device.NT || m > fewRows || n < colStep || k == 0 {
		return false
	}
	kernels := x.tile.few(x.b)
	if kernels == nil || k%kernels.step != 0 {
		return false
	}
	j := &x.few
	j.x, j.m, j.n, j.k = x, m, n, k
	j.depth, j.words = x.tile.depth(k), k/x.tile.group
	j.group(kernels)
	if j.words*j.rows > len(x.scratch[0].c) {
		return false
	}
	j.packRows()
	j.panels = ceil(n, colStep)
	if m*n*k < alone {
		x.dealOut(j.panels, 1)
		p.RunAlone(1, j)
	} else {
		x.dealOut(ceil(j.panels, p.Threads()), p.Threads())
		p.Run(min(j.panels, p.Threads()), j)
	}
	j.a = nil
	return true
}

// group divides the rows into groups: as many of the largest size as are full, and the smallest one that holds the
// rest.
func (j *fewProduct[E]) group(kernels *fewKernels[E]) {
	j.used, j.rows, j.cols = 0, 0, 0
	for from := 0; from < j.m; {
		i := 0
		for i < len(kernels.list)-1 && kernels.list[i].rows < j.m-from {
			i++
		}
		kernel := &kernels.list[i]
		m := min(kernel.rows, j.m-from)
		g := fewGroup[E]{kernel: kernel, from: from, m: m, rows: roundUp(m, kernel.step), pad: j.rows}
		j.groups[j.used] = g
		j.used++
		j.rows, j.cols, from = j.rows+g.rows, max(j.cols, kernel.cols), from+m
	}
}

// packRows packs the rows of a as the kernels read them.
func (j *fewProduct[E]) packRows() {
	x := j.x
	j.a = x.scratch[0].c[:j.words*j.rows]
	for i := range j.groups[:j.used] {
		g := &j.groups[i]
		a := j.a[j.words*g.pad:][:j.words*g.rows]
		if g.rows == 1 {
			x.pack.copyRows(&a[0], j.words, x.a.at(g.from, 0), 1, j.k)
			continue
		}
		if g.m < g.rows {
			clear(a)
		}
		x.pack.transpose(&a[0], g.rows, x.a.at(g.from, 0), g.m, j.k)
	}
}

// Do computes panels of the result until none is left. Making each panel a task of the pool would cost a tenth of a
// panel's time.
func (j *fewProduct[E]) Do(worker, _ int) {
	d := &j.x.deal
	for column, row, ok := d.take(-1); ok; column, row, ok = d.take(column) {
		if panel := column*d.down + row; panel < j.panels {
			j.panel(&j.x.scratch[worker], panel, row+1 < d.down)
		}
	}
}

// panel computes one panel of the result. The last panel starts early enough to be complete; columns that another
// panel has computed are not stored again. more says whether the worker continues with the next panel.
func (j *fewProduct[E]) panel(s *scratch[E], panel int, more bool) {
	x := j.x
	sums, spare := s.a[:j.rows*colStep], &s.a[2*fewRows*colStep]
	col := panel * colStep
	from := min(col, j.n-colStep)
	if x.b.dtype.Blocked() {
		from = col // its rows are padded to whole panels
	}
	if x.bias != nil {
		x.startSums(sums, from)
	}
	next := uintptr(x.b.at(from, 0).p)
	if more || len(x.scratch) == 1 { // otherwise another worker reads the next panel
		next += uintptr(colStep * x.b.ld * x.b.dtype.Size())
	}
	for p := 0; p < j.k; p += j.depth {
		for c := 0; c < colStep; c += j.cols {
			j.block(sums[c:], x.b.at(from+c, p), p, &next, spare)
		}
	}
	for i := range j.groups[:j.used] {
		g := &j.groups[i]
		x.store(&x.dst, x.dst.at(g.from, col), &sums[g.pad*colStep+col-from], g.m, min(colStep, j.n-col))
	}
}

// block adds the products of all rows with the K block b, at p, to the sums of j.cols columns. It advances next, where
// the first kernel prefetches; the other kernels prefetch the same memory again, which costs next to nothing.
func (j *fewProduct[E]) block(sums []E, b source, p int, next *uintptr, spare *E) {
	size := b.dtype.Size()
	steps := min(j.depth, j.k-p) * size / fewSteps
	add := 0
	if p > 0 || j.x.bias != nil {
		add = addSums
	}
	word := p / j.x.tile.group
	for i := range j.groups[:j.used] {
		g := &j.groups[i]
		a := &j.a[j.words*g.pad+word*g.rows]
		if b.dtype.Blocked() {
			steps, from := min(j.depth, j.k-p), b.j%tensor.Side
			g.kernel.run(&sums[g.pad*colStep], a, g.rows, b.block(0), from, steps, add, 0, spare)
			continue
		}
		for c := 0; c < j.cols; c += g.kernel.cols {
			g.kernel.run(&sums[g.pad*colStep+c], a, g.rows, unsafe.Add(b.p, c*b.ld*size), b.ld, steps, add,
				*next+uintptr(c*steps*fewSteps), spare)
		}
	}
	*next += uintptr(j.cols * steps * fewSteps)
}
