package gemm

import (
	"unsafe"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/tensor"
)

// A product is a matrix product in progress, cut into tasks, with its kernels and scratch memory. One product value
// serves all products of a precision.
type product[E tensor.Number] struct {
	tile  tile[E]
	pack  packer[E]
	store store[E]

	arena   *tensor.Arena
	scratch []scratch[E] // one per worker

	form device.Form
	a, b source
	dst  sink
	bias []E // initial value of each column's sums; nil means 0
	cut  cut
	deal deal

	direct bool // complete tiles of sums are stored directly in the result …
	addTo  int  // … or added to it

	mirror mirror
	few    fewProduct[E]
}

// scratch is the scratch memory of a worker.
type scratch[E tensor.Number] struct {
	a []E // maxA rows, or a panel of rowsTN columns
	b []E // panels of colStep columns
	c []E // running sums, in tiles of mr×colStep, each contiguous

	start []E // initial sums of a tile, if there is a bias; for a strip, memory for a tile
	bias  []E // initial sums of the current columns
	strip strip

	column int // column of the last task; initially −1
	packed int // the column whose panels are all in b, or −1
}

// A sink describes the destination of the result.
type sink struct {
	p     unsafe.Pointer
	ld    int
	dtype tensor.DType
	add   bool
	scale float64
}

func newProduct[E tensor.Number](t tile[E], p packer[E], s store[E]) *product[E] {
	return &product[E]{tile: t, pack: p, store: s}
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

// reserve allocates the workers' scratch memory.
func (x *product[E]) reserve(workers int) {
	z := &x.tile.sizes
	sizeA := max((maxA+z.mr)*z.strideRows(), z.maxK*rowsTN)
	sizeB, sizeC, sizeStart := maxB, z.maxC, z.mr*colStep
	if x.tile.strip != nil {
		sizeA = 2 * ((stripsTN*z.mr+1)*z.strideRows() + z.maxK*colStep)
		sizeB = maxDeep + (z.maxK+1)*z.maxN // at least one K block
	}
	total := workers * (sizeA + sizeB + sizeC + sizeStart + z.maxN)
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
		x.scratch = append(x.scratch, scratch[E]{
			a: take(sizeA), b: take(sizeB), c: take(sizeC), start: take(sizeStart), bias: take(z.maxN),
		})
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
func (x *product[E]) run(p *pool.Pool, form device.Form, m, n, k int, dst *tensor.Tensor, a, b source,
	opt device.MatMulOptions) {
	if m == 0 || n == 0 {
		return
	}
	if x.arena == nil {
		x.reserve(p.Threads())
	}
	x.form, x.a, x.b = form, a, b
	x.dst = sink{unsafe.Pointer(unsafe.SliceData(dst.Raw())), n, dst.DType(), opt.Accumulate, opt.Scale}
	if opt.Scale == 0 {
		x.dst.scale = 1
	}
	x.bias = nil
	if opt.Bias != nil {
		x.bias = unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(opt.Bias.Raw()))), n)
	}
	x.direct = dst.DType() == dtypeOf(*new(E)) && x.dst.scale == 1
	x.addTo = 0
	if x.dst.add {
		x.addTo = addTo
	}
	if !opt.Symmetric && x.runFew(p, m, n, k) {
		x.a, x.b, x.dst, x.bias = source{}, source{}, sink{}, nil
		return
	}
	if x.tile.strip != nil {
		x.cut = chooseStrips(form, m, n, k, &x.tile.sizes, x.plainStrips(32), len(x.scratch), opt.Symmetric)
	} else {
		x.cut = choose(form, m, n, k, &x.tile.sizes, len(x.scratch), opt.Symmetric)
	}
	x.deal.reset(x.cut.down, x.cut.across)
	for i := range x.scratch {
		x.scratch[i].column, x.scratch[i].packed = -1, -1
	}
	p.Run(x.cut.down*x.cut.across, x)
	if opt.Symmetric {
		x.mirror = mirror{cut: &x.cut, dst: x.dst}
		p.Run(x.cut.down*x.cut.across, &x.mirror)
		x.mirror.dst = sink{}
	}
	x.a, x.b, x.dst, x.bias = source{}, source{}, sink{}, nil // the memory may be unmapped before the next product
}
