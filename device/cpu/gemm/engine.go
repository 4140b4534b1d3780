package gemm

import (
	"fmt"
	"unsafe"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/internal/isa"
	"anneal/tensor"
)

// An Engine multiplies matrices on the workers of a pool. MatMul must be called from one goroutine at a time. It does
// not allocate after the first call of each precision.
type Engine struct {
	pool *pool.Pool
	fma  *product[float32] // operands in FP32, or rounded to FP16 or TF32 and held in FP32
	bf16 *product[float32] // BF16 operands; the same as fma unless the tier has dot products or tiles
	f64  *product[float64]

	blocked tensor.DType // the blocked format that bf16 multiplies; fma multiplies all of them
}

// New returns the engine of a tier. The first product of each precision reserves 7.5 MB of scratch memory per worker
// (F64: 15 MB), of which small products use little.
func New(tier isa.Tier, p *pool.Pool) *Engine {
	isa.Require(tier)
	return engineOf(tier, p)
}

func engineOf(tier isa.Tier, p *pool.Pool) *Engine {
	e := &Engine{pool: p, fma: newProduct(f32Tile(tier), f32Packer(tier), f32Store(tier))}
	e.bf16 = e.fma
	if kernels, pack, ok := bf16Tile(tier); ok {
		e.bf16 = newProduct(kernels, pack, f32Store(tier))
		e.blocked = Blocked(tier, tensor.BF16)
	}
	e.f64 = newProduct(f64Tile(tier), genericPacker[float64](), put[float64])
	return e
}

// Scratch returns the ScratchBytes of an engine of a tier and a number of workers after products with one format of
// operands.
func Scratch(tier isa.Tier, workers int, operand tensor.DType) int {
	e := engineOf(tier, nil)
	switch operand {
	case tensor.F64:
		return e.f64.predict(workers)
	case tensor.BF16:
		return e.bf16.predict(workers)
	}
	return e.fma.predict(workers)
}

// ScratchBytes returns the scratch memory reserved so far.
func (e *Engine) ScratchBytes() int {
	n := e.fma.scratchBytes() + e.f64.scratchBytes()
	if e.bf16 != e.fma {
		n += e.bf16.scratchBytes()
	}
	return n
}

// Close frees the scratch memory, but not the pool.
func (e *Engine) Close() {
	e.fma.close()
	e.bf16.close()
	e.f64.close()
}

// MatMul implements device.Device. a, b and dst are F32, BF16 or F16, b also of a blocked format; with opt.Operand F64
// all are F64. Matrices are treated as [Rows, Cols]. MatMul panics if the shapes do not match the form.
func (e *Engine) MatMul(dst, a, b *tensor.Tensor, form device.Form, opt device.MatMulOptions) {
	m, n, k, ok := shape(dst, a, b, form)
	if !ok {
		panic(fmt.Sprintf("gemm: %v = %v · %v does not match form %v", dst, a, b, form))
	}
	if opt.Symmetric && m != n {
		panic(fmt.Sprintf("gemm: a product of %d rows and %d columns cannot be symmetric", m, n))
	}
	checkBias(n, opt)
	x, y := operand(a, opt.Operand), operand(b, opt.Operand)
	switch opt.Operand {
	case tensor.F64:
		if all(tensor.F64, dst, a, b) {
			e.f64.run(e.pool, form, m, n, k, dst, x, y, opt)
			return
		}
	case tensor.F32, tensor.BF16, tensor.F16, tensor.TF32:
		blocked := b.DType().Blocked() && form == device.NT
		if !narrow(dst) || !narrow(a) || !narrow(b) && !blocked {
			break
		}
		p := e.fma
		if opt.Operand == tensor.BF16 && x.dtype != tensor.F16 && e.multipliesBF16By(y.dtype) {
			p = e.bf16
		}
		p.run(e.pool, form, m, n, k, dst, x, y, opt)
		return
	}
	panic(fmt.Sprintf("gemm: no product of %v and %v to %v with %v operands", a, b, dst, opt.Operand))
}

// multipliesBF16By reports whether bf16 accepts an operand b of a dtype.
func (e *Engine) multipliesBF16By(b tensor.DType) bool {
	return b == e.blocked || b != tensor.F16 && !b.Blocked()
}

// checkBias panics if the bias is invalid for a product of n columns.
func checkBias(n int, opt device.MatMulOptions) {
	want := tensor.F32
	if opt.Operand == tensor.F64 {
		want = tensor.F64
	}
	if b := opt.Bias; b != nil && (b.Len() != n || b.DType() != want || opt.Symmetric) {
		panic(fmt.Sprintf("gemm: %v is not a valid bias for %d columns with %v operands, or the product is symmetric",
			b, n, opt.Operand))
	}
}

// shape returns M, N and K of a product, and whether the three tensors agree on them.
func shape(dst, a, b *tensor.Tensor, form device.Form) (m, n, k int, ok bool) {
	m, k = a.Rows(), a.Cols()
	if form == device.TN {
		m, k = k, m
	}
	kb, n := b.Rows(), b.Cols()
	if form == device.NT {
		kb, n = n, kb
	}
	return m, n, k, k == kb && dst.Rows() == m && dst.Cols() == n
}

func all(d tensor.DType, ts ...*tensor.Tensor) bool {
	for _, t := range ts {
		if t.DType() != d {
			return false
		}
	}
	return true
}

func narrow(t *tensor.Tensor) bool {
	d := t.DType()
	return d == tensor.F32 || d == tensor.BF16 || d == tensor.F16
}

func operand(t *tensor.Tensor, round tensor.DType) source {
	return source{p: unsafe.Pointer(unsafe.SliceData(t.Raw())), ld: t.Cols(), dtype: t.DType(), round: round}
}
