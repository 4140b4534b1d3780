//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"

	"anneal/device"
	"anneal/device/cuda/cublaslt"
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// workspace is the scratch memory of cuBLASLt's products: the recommended size for Hopper.
const workspace = 32 << 20

// fp8Capability is the first compute capability whose tensor cores support FP8.
const fp8Capability = 89

// A product is one MatMul. cuBLASLt is column-major, so dst [M, N] is treated as its transpose [N, M], and b is the
// first operand.
type product struct {
	dst, a, b *tensor.Tensor
	form      device.Form
	opt       device.MatMulOptions
	m, n, k   int

	wide   tensor.DType   // of sums: F32, or F64
	stored tensor.DType   // of both operands in the multiplication
	fp8    bool           // converted to FP8, a [M, K] and b [N, K]
	result tensor.DType   // format that the library stores
	direct bool           // stored in dst directly, with the bias
	memory driver.Pointer // scratch: workspace, then allocations of take
	used   int
}

// MatMul implements device.Device: 2·M·N·K operations. An operand with another storage than the multiplication's is
// first converted in scratch memory. A bias is rounded to dst's format before it is added.
func (d *Device) MatMul(dst, a, b *tensor.Tensor, form device.Form, opt device.MatMulOptions) {
	p := product{dst: dst, a: a, b: b, form: form, opt: opt}
	p.check()
	p.fp8 = d.card.Capability >= fp8Capability && opt.FP8[0].Size() == 1 && opt.FP8[1].Size() == 1 && p.m%16 == 0 &&
		p.n%16 == 0 && p.k%16 == 0 && p.k > 0
	p.decide()
	if p.m == 0 || p.n == 0 {
		return
	}
	if p.memory = d.scratch(p.room()); d.err != nil {
		return
	}
	x, y := d.operands(&p)
	switch {
	case d.multiply(&p, x, y):
	case p.fp8:
		opt.FP8 = [2]tensor.DType{}
		d.MatMul(dst, a, b, form, opt)
	default:
		d.multiplySlowly(&p, x, y)
	}
}

// check determines the sizes and formats, and panics if they do not match, which is a bug in the caller.
func (p *product) check() {
	am, ak, bk, bn := p.a.Rows(), p.a.Cols(), p.b.Rows(), p.b.Cols()
	if p.form == device.TN {
		am, ak = ak, am
	}
	if p.form == device.NT {
		bk, bn = bn, bk
	}
	p.m, p.n, p.k = am, bn, ak
	if ak != bk || p.dst.Rows() != am || p.dst.Cols() != bn {
		panic(fmt.Sprintf("cuda: %v = %v · %v does not match form %v", p.dst, p.a, p.b, p.form))
	}
	p.wide = tensor.F32
	if p.opt.Operand == tensor.F64 {
		p.wide = tensor.F64
	}
	if bias := p.opt.Bias; bias != nil && (bias.Len() != p.n || bias.DType() != p.wide) {
		panic(fmt.Sprintf("cuda: bias %v for %d columns of %v", bias, p.n, p.wide))
	}
	for _, t := range []*tensor.Tensor{p.dst, p.a, p.b} {
		if narrow := t.DType() == tensor.F32 || t.DType() == tensor.BF16 || t.DType() == tensor.F16; narrow ==
			(p.wide == tensor.F64) {
			panic(fmt.Sprintf("cuda: no product of %v and %v to %v with %v operands", p.a, p.b, p.dst, p.opt.Operand))
		}
	}
}

// decide chooses the formats of operands and result.
func (p *product) decide() {
	x, y := p.rounded(p.a), p.rounded(p.b)
	switch {
	case x == y:
		p.stored = x
	case x == tensor.F32 || y == tensor.F32:
		p.stored = tensor.F32
	default: // holds the numbers of both operands exactly
		p.stored = tensor.TF32
	}
	p.result = p.wide
	if to := p.dst.DType(); to == p.stored || p.fp8 {
		p.result = to
	}
	unfit := p.wide == tensor.F64 || p.fp8 && p.result == tensor.F32 // for the library's bias epilogue
	p.direct = p.result == p.dst.DType() && !(p.opt.Bias != nil && unfit)
}

// rounded returns the format to which an operand is rounded; 16-bit storage is not rounded.
func (p *product) rounded(t *tensor.Tensor) tensor.DType {
	if t.DType() == tensor.BF16 || t.DType() == tensor.F16 {
		return t.DType()
	}
	return p.opt.Operand
}

// room returns the bytes of scratch memory of the product.
func (p *product) room() int {
	n := workspace
	for _, t := range []*tensor.Tensor{p.a, p.b} {
		switch {
		case p.fp8:
			n += padded(t.Len())
		case t.DType() != p.stored:
			n += padded(p.stored.Size() * t.Len())
		}
	}
	if !p.direct {
		return n + padded(p.result.Size()*p.m*p.n)
	}
	return n + padded(p.result.Size()*p.n)
}

func padded(size int) int { return (size + 255) &^ 255 }

// take allocates scratch memory.
func (p *product) take(size int) driver.Pointer {
	at := p.memory + driver.Pointer(workspace+p.used)
	p.used += padded(size)
	return at
}

// operands returns both operands in the format of the multiplication.
func (d *Device) operands(p *product) (x, y driver.Pointer) {
	if p.fp8 {
		return d.toFP8(p, p.a, p.opt.FP8[0], p.form == device.TN), d.toFP8(p, p.b, p.opt.FP8[1], p.form != device.NT)
	}
	return d.operand(p, p.a), d.operand(p, p.b)
}

// operand converts a tensor to p.stored if needed.
func (d *Device) operand(p *product, t *tensor.Tensor) driver.Pointer {
	if t.DType() == p.stored {
		return driver.Pointer(t.Pointer())
	}
	to := p.stored
	if to == tensor.TF32 {
		to = tensor.F32
	}
	return d.convert(p, t, p.rounded(t), to)
}

// convert rounds a tensor to one format and stores it in another that holds its numbers.
func (d *Device) convert(p *product, t *tensor.Tensor, round, to tensor.DType) driver.Pointer {
	at := p.take(to.Size() * t.Len())
	c := d.begin("operand", "operand", to, define{"S", typeName(t.DType())}, define{"R", typeName(round)})
	c.pointer(at)
	c.tensor(t)
	c.int(t.Len())
	c.launch(d.spread(t.Len(), 4*256), 256, 0)
	return at
}

// spread returns the number of blocks for n elements, each elements per block and iteration.
func (d *Device) spread(n, each int) int {
	return min((n+each-1)/each, 16*d.card.Multiprocessors)
}

// toFP8 converts a matrix of FP8 numbers to FP8 storage, transposed if across is set.
func (d *Device) toFP8(p *product, t *tensor.Tensor, format tensor.DType, across bool) driver.Pointer {
	at := p.take(t.Len())
	mantissa, turn := "3", 0
	if format == tensor.F8E5M2 {
		mantissa = "2"
	}
	if across {
		turn = 1
	}
	c := d.begin("fp8", "fp8", tensor.BF16, define{"MANTISSA", mantissa})
	c.pointer(at)
	c.tensor(t)
	c.int(t.Rows())
	c.int(t.Cols())
	c.int(turn)
	c.grid((t.Cols()+63)/64, (t.Rows()+63)/64, 1, 256, 0)
	return at
}

// multiply runs the library's product; it returns false if there is none.
func (d *Device) multiply(p *product, x, y driver.Pointer) bool {
	q := p.problem()
	o := cublaslt.Operands{
		A: y, B: x, D: driver.Pointer(p.dst.Pointer()), Workspace: p.memory, WorkspaceSize: workspace,
		Alpha: p.opt.Scale,
	}
	if o.Alpha == 0 {
		o.Alpha = 1
	}
	switch {
	case !p.direct:
		o.D = p.take(p.result.Size() * p.m * p.n)
	case p.opt.Bias != nil:
		o.Bias = driver.Pointer(p.opt.Bias.Pointer())
		if p.result != p.wide {
			o.Bias = d.convert(p, p.opt.Bias, p.result, p.result)
		}
	}
	if p.direct && p.opt.Accumulate {
		o.Beta = 1
	}
	q.Alignment = alignment(o.A, o.B, o.D)
	plan := d.plan(q)
	if plan == nil {
		return d.err != nil
	}
	d.do(func() error {
		if err := d.timed(p.name(d), func() error { return d.blas.Run(plan, &o, d.stream) }); err != nil {
			return fmt.Errorf("%v = %v · %v: %w", p.dst, p.a, p.b, err)
		}
		return nil
	})
	if !p.direct {
		d.finish(p, o.D)
	}
	return true
}

var formats = map[tensor.DType]cublaslt.Type{
	tensor.F32: cublaslt.F32, tensor.TF32: cublaslt.F32, tensor.F64: cublaslt.F64, tensor.BF16: cublaslt.BF16,
	tensor.F16: cublaslt.F16, tensor.F8E4M3: cublaslt.E4M3, tensor.F8E5M2: cublaslt.E5M2,
}

// name returns the name of the product in a profile.
func (p *product) name(d *Device) string {
	if d.profile == nil {
		return ""
	}
	format := p.stored.String()
	if p.fp8 {
		format = "fp8"
	}
	return fmt.Sprintf("matmul %s %v %d×%d×%d", format, p.form, p.m, p.n, p.k)
}

// problem returns the problem for the library, with a and b swapped.
func (p *product) problem() cublaslt.Problem {
	q := cublaslt.Problem{
		M: p.n, N: p.m, K: p.k, TransA: p.form == device.NT, TransB: p.form == device.TN,
		A: formats[p.stored], B: formats[p.stored], D: formats[p.result], Compute: cublaslt.InF32, Bias: p.direct &&
			p.opt.Bias != nil,
	}
	switch {
	case p.fp8:
		q.TransA, q.TransB, q.A, q.B = true, false, formats[p.opt.FP8[1]], formats[p.opt.FP8[0]]
	case p.stored == tensor.TF32:
		q.Compute = cublaslt.InTF32
	case p.stored == tensor.F64:
		q.Compute = cublaslt.InF64
	}
	return q
}

// alignment returns the largest power of two, up to 256, that divides all addresses.
func alignment(addresses ...driver.Pointer) int {
	n := 256
	for _, a := range addresses {
		for int(a)%n != 0 {
			n /= 2
		}
	}
	return n
}

// plan returns the library's plan for a problem, nil if it has none.
func (d *Device) plan(q cublaslt.Problem) *cublaslt.Plan {
	plan, known := d.plans[q]
	if known {
		return plan
	}
	d.do(func() (err error) {
		if plan, err = d.blas.Plan(q, workspace); errors.Is(err, cublaslt.ErrUnsupported) {
			return nil
		}
		return err
	})
	d.plans[q] = plan
	return plan
}

// finish converts and stores sums in dst.
func (d *Device) finish(p *product, sums driver.Pointer) {
	c := d.begin("matmul", "finish", p.wide, define{"D", typeName(p.dst.DType())})
	c.tensor(p.dst)
	c.pointer(sums)
	c.tensor(p.opt.Bias)
	c.int(p.m)
	c.int(p.n)
	c.int(flag(p.opt.Accumulate))
	c.launch(d.spread(p.m*p.n, 256), 256, 0)
}

// multiplySlowly computes products that the library does not support.
func (d *Device) multiplySlowly(p *product, x, y driver.Pointer) {
	stored := p.stored
	if stored == tensor.TF32 {
		stored = tensor.F32
	}
	ai, ak, bk, bj := p.k, 1, p.n, 1
	if p.form == device.TN {
		ai, ak = 1, p.m
	}
	if p.form == device.NT {
		bk, bj = 1, p.k
	}
	if p.opt.Scale == 0 {
		p.opt.Scale = 1
	}
	c := d.begin("matmul", "product", stored, define{"D", typeName(p.dst.DType())})
	c.tensor(p.dst)
	c.pointer(x)
	c.pointer(y)
	c.tensor(p.opt.Bias)
	for _, n := range []int{p.m, p.n, p.k, ai, ak, bk, bj} {
		c.int(n)
	}
	c.real(p.opt.Scale)
	c.int(flag(p.opt.Accumulate))
	c.grid((p.n+31)/32, (p.m+31)/32, 1, 256, 0)
}

// flag returns a bool in the form of kernel arguments.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
