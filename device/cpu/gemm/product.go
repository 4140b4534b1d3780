package gemm

import (
	"unsafe"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/internal/isa"
	"anneal/tensor"
)

// A product is a matrix product in progress, cut into tasks, with its kernels and scratch memory. One product value
// serves all products of a precision.
type product[E tensor.Number] struct {
	tile  tile[E]
	pack  packer[E]
	store store[E]
	first isa.Cache // of the first level

	arena   *tensor.Arena
	scratch []scratch[E] // one per worker

	form device.Form
	a, b source
	dst  sink
	bias []E // initial value of each column's sums; nil means 0
	cut  cut
	cuts [64]chosen // of recent products
	deal deal

	direct bool // complete tiles of sums are stored directly in the result …
	addTo  int  // … or added to it
	plain  bool // kernels read a in place

	mirror mirror
	few    fewProduct[E]
}

// scratch is the scratch memory of a worker.
type scratch[E tensor.Number] struct {
	a []E // packed rows, or panels of columns
	b []E // panels of colStep columns
	c []E // running sums, in tiles of mr×colStep, each contiguous

	start []E // initial sums of a tile, if there is a bias; for a strip, memory for a tile
	bias  []E // initial sums of the current columns
	visit visit
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
	return &product[E]{tile: t, pack: p, store: s, first: isa.FirstLevel()}
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

// scratchSizes are the elements of each slice of a worker's scratch.
type scratchSizes struct{ a, b, c, start, bias int }

func (x *product[E]) scratchSizes() scratchSizes {
	z := &x.tile.sizes
	p := scratchSizes{
		a: max((z.high+z.mr)*z.strideRows(), z.maxK*z.rowsOfA(device.TN)), b: maxB, c: z.maxC,
		start: z.mr * colStep, bias: z.maxN,
	}
	if x.tile.outer != nil {
		p.a = max(p.a, z.maxK*colStep)
	}
	if x.tile.strip != nil {
		p.a = 2 * ((stripsTN*z.mr+1)*z.strideRows() + z.maxK*colStep)
		p.b = maxDeep + (z.maxK+1)*z.maxN // at least one K block
	}
	return p
}

// bytes returns the scratch memory of a number of workers.
func (p scratchSizes) bytes(workers, size int) int {
	n := workers * (p.a + p.b + p.c + p.start + p.bias) * size
	return (n + tensor.Align - 1) &^ (tensor.Align - 1)
}

// predict returns the scratchBytes after a product on that many workers.
func (x *product[E]) predict(workers int) int {
	var zero E
	return x.scratchSizes().bytes(workers, int(unsafe.Sizeof(zero)))
}

// reserve allocates the workers' scratch memory.
func (x *product[E]) reserve(workers int) {
	var zero E
	p, size := x.scratchSizes(), int(unsafe.Sizeof(zero))
	total := p.bytes(workers, size) / size
	arena, err := tensor.NewArena("matrix products", total*size)
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
			a: take(p.a), b: take(p.b), c: take(p.c), start: take(p.start), bias: take(p.bias),
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

// dealOut prepares for across columns of down tasks.
func (x *product[E]) dealOut(down, across int) {
	x.deal.reset(down, across)
	for i := range x.scratch {
		x.scratch[i].column, x.scratch[i].packed = -1, -1
	}
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
	x.chooseCut(wanted{form, m, n, k, opt.Symmetric, x.tile.strip != nil && x.plainStrips(32)})
	x.dealOut(x.cut.down, x.cut.across)
	x.plain = x.plainA()
	p.Run(x.cut.down*x.cut.across, x)
	if opt.Symmetric {
		x.mirror = mirror{cut: &x.cut, dst: x.dst}
		p.Run(x.cut.down*x.cut.across, &x.mirror)
		x.mirror.dst = sink{}
	}
	x.a, x.b, x.dst, x.bias = source{}, source{}, sink{}, nil // the memory may be unmapped before the next product
	for i := range x.scratch {
		x.scratch[i].visit = visit{}
	}
}
