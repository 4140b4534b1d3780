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
// add it adds to c. It also prefetches as many bytes from next on as it reads of b. spare is memory for 1,024 words.
type few[E tensor.Number] func(c, a *E, rows int, b unsafe.Pointer, ldb, steps, add int, next uintptr, spare *E)

// fewKernels are the kernels for one kind of b; nil if there are none.
type fewKernels[E tensor.Number] struct {
	one, more few[E] // for one row, and for up to most rows
	most      int
	rows      int // the number of rows must be a multiple of it, unless it is one
	cols      int // columns per call; divides colStep
	step      int // k must be a multiple of it
}

// fewSteps is the number of bytes of a row of b per step, fewRows the largest number of rows of a.
const (
	fewSteps = 16
	fewRows  = 16
)

// A fewProduct is a product of few rows in progress. A task is a run of panels of colStep columns.
type fewProduct[E tensor.Number] struct {
	x       *product[E]
	kernel  few[E]
	cols    int
	m, n, k int
	rows    int // rows of the kernel
	depth   int // of a K block
	panels  int // per task
	a       []E // [words of k, rows]
}

// runFew computes the product that x is set up for, if it has few rows and there are kernels for it.
func (x *product[E]) runFew(p *pool.Pool, m, n, k int) bool {
	if x.form != device.NT || m > fewRows || n < colStep || k == 0 {
		return false
	}
	kernels := x.tile.few(x.b)
	if kernels == nil || m > kernels.most || k%kernels.step != 0 {
		return false
	}
	j := &x.few
	*j = fewProduct[E]{x: x, kernel: kernels.one, cols: kernels.cols, m: m, n: n, k: k, rows: 1, depth: x.tile.depth(k)}
	if m > 1 {
		j.kernel, j.rows = kernels.more, roundUp(m, kernels.rows)
	}
	words := k / x.tile.group
	if words*j.rows > len(x.scratch[0].c) {
		return false
	}
	j.a = x.scratch[0].c[:words*j.rows]
	if m == 1 {
		x.pack.copyRows(&j.a[0], words, x.a, 1, k)
	} else {
		clear(j.a)
		x.pack.transpose(&j.a[0], j.rows, x.a, m, k)
	}
	panels := ceil(n, colStep)
	j.panels = ceil(panels, 4*p.Threads())
	p.Run(ceil(panels, j.panels), j)
	j.a = nil
	return true
}

// Do computes one task's panels. The last panel of the result starts early enough to be complete; columns that
// another panel has computed are not stored again.
func (j *fewProduct[E]) Do(worker, task int) {
	x := j.x
	sums, spare := x.scratch[worker].a[:j.rows*colStep], &x.scratch[worker].a[fewRows*colStep]
	rowBytes := x.b.ld * x.b.dtype.Size()
	for col := task * j.panels * colStep; col < min(j.n, (task+1)*j.panels*colStep); col += colStep {
		from := min(col, j.n-colStep)
		if x.bias != nil {
			x.startSums(sums, from)
		}
		next := uintptr(x.b.at(from, 0).p) + uintptr(colStep*rowBytes)
		for p := 0; p < j.k; p += j.depth {
			b := x.b.at(from, p)
			steps := min(j.depth, j.k-p) * b.dtype.Size() / fewSteps
			add := 0
			if p > 0 || x.bias != nil {
				add = addSums
			}
			for c := 0; c < colStep; c += j.cols {
				j.kernel(&sums[c], &j.a[p/x.tile.group*j.rows], j.rows, unsafe.Add(b.p, c*rowBytes), b.ld, steps,
					add, next, spare)
				next += uintptr(j.cols * steps * fewSteps)
			}
		}
		x.store(&x.dst, x.dst.at(0, col), &sums[col-from], j.m, min(colStep, j.n-col))
	}
}
