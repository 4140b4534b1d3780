package gemm

import (
	"unsafe"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/tensor"
)

// Block sizes. A task's part of the result is at most maxM×maxN; it is computed in K blocks of at most maxK words, for
// which the panels of b (maxK×maxN words, 512 KB) stay in the second-level cache together with a block of a (maxA rows, 96 KB)
// while the running sums pass through it; a panel of b (maxK×ColStep, 32 KB) stays in the first-level cache.
const (
	maxM = 528
	maxN = 512
	maxK = 256
	maxA = 96
)

// Strides of packed blocks are not powers of two, lest rows compete for the same lines of a cache.
const (
	strideRows   = maxK + 16            // words between rows of a
	stridePanelB = (maxK + 1) * ColStep // words between panels of b
)

// A product is a matrix product in progress, cut into tasks, and the machinery for it: kernels and scratch memory. One is
// reused for all products of a precision.
type product[E tensor.Number] struct {
	tile  tile[E]
	pack  packer[E]
	store store[E]
	group int // elements of k per word: 2 where words are pairs of BF16

	arena   *tensor.Arena
	scratch []scratch[E] // one per worker

	form          device.Form
	m, n, k       int
	rows, cols    int // of a task's tile
	tasks, across int // all of them, and side by side
	depth         int // of a K block
	a, b          source
	dst           sink
}

// scratch is the memory of a worker.
type scratch[E tensor.Number] struct {
	a []E // maxA rows, or panels of mr columns
	b []E // panels of ColStep columns
	c []E // running sums, in tiles of mr×ColStep, each contiguous
}

// A sink is where the result goes.
type sink struct {
	p     unsafe.Pointer
	ld    int
	dtype tensor.DType
	add   bool
}

func newProduct[E tensor.Number](t tile[E], p packer[E], s store[E], group int) *product[E] {
	return &product[E]{tile: t, pack: p, store: s, group: group}
}

func (x *product[E]) scratchBytes() int {
	if x.arena == nil {
		return 0
	}
	return x.arena.Size()
}

func (x *product[E]) close() {
	if x.arena != nil {
		x.arena.Close()
		x.arena, x.scratch = nil, nil
	}
}

// reserve makes the workers' scratch memory.
func (x *product[E]) reserve(workers int) {
	sizeA := (maxA + x.tile.mr) * strideRows
	sizeB := maxN / ColStep * stridePanelB
	sizeC := (maxM + x.tile.mr) * maxN
	total := workers * (sizeA + sizeB + sizeC)
	var zero E
	arena, err := tensor.NewArena("matrix products", total*int(unsafe.Sizeof(zero)))
	if err != nil {
		panic(err)
	}
	mem := arena.New(dtypeOf(zero), total)
	words := unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(mem.Raw()))), total)
	take := func(n int) []E {
		s := words[:n:n]
		words = words[n:]
		return s
	}
	for range workers {
		x.scratch = append(x.scratch, scratch[E]{a: take(sizeA), b: take(sizeB), c: take(sizeC)})
	}
	x.arena = arena
}

func dtypeOf[E tensor.Number](zero E) tensor.DType {
	if unsafe.Sizeof(zero) == 8 {
		return tensor.F64
	}
	return tensor.F32
}

// run computes one product.
func (x *product[E]) run(p *pool.Pool, form device.Form, m, n, k int, dst *tensor.Tensor, a, b source, add bool) {
	if m == 0 || n == 0 {
		return
	}
	if x.arena == nil {
		x.reserve(p.Threads())
	}
	x.form, x.m, x.n, x.k, x.a, x.b = form, m, n, k, a, b
	x.depth = even(k, maxK*x.group, 8*x.group)
	x.dst = sink{unsafe.Pointer(unsafe.SliceData(dst.Raw())), n, dst.DType(), add}
	x.rows, x.cols = x.cut(m, n)
	x.across = (n + x.cols - 1) / x.cols
	x.tasks = (m + x.rows - 1) / x.rows * x.across
	p.Run(x.tasks, x)
}

// cut chooses the size of a task's tile from the shape alone.
func (x *product[E]) cut(m, n int) (rows, cols int) {
	return even(m, maxM/x.tile.mr*x.tile.mr, x.tile.mr), even(n, maxN, ColStep)
}

// even splits n into the fewest parts of at most limit and returns their size, a multiple of step.
func even(n, limit, step int) int {
	parts := max(1, (n+limit-1)/limit)
	return min(roundUp((n+parts-1)/parts, step), limit)
}
