//go:build cuda && linux

package cublaslt

import (
	"errors"
	"math"
	"unsafe"

	"anneal/device/cuda/driver"
	"anneal/internal/dynlib"
)

// A Type is a storage format of matrices, a cudaDataType.
type Type int32

// The storage formats.
const (
	F32  Type = 0
	F64  Type = 1
	F16  Type = 2
	BF16 Type = 14
	E4M3 Type = 28
	E5M2 Type = 29
)

// A Compute defines how products are summed, a cublasComputeType_t.
type Compute int32

// The values: sums in FP32; sums in FP32 of FP32 operands truncated to TF32; sums in FP64.
const (
	InF32  Compute = 68
	InTF32 Compute = 77
	InF64  Compute = 70
)

// A Problem is D [M, N] = alpha·op(A)·op(B) + beta·D, plus bias [M] on every column if Bias is set. op(A) is [M, K],
// op(B) [K, N], and the matrices are stored without gaps. It is comparable.
type Problem struct {
	M, N, K        int
	TransA, TransB bool // op transposes: the matrix is stored [K, M], or [N, K]
	A, B, D        Type
	Compute        Compute
	Bias           bool // of type D
	Alignment      int  // divides the addresses of all matrices, in bytes
}

// A Plan is the chosen algorithm for a problem.
type Plan struct {
	desc, a, b, d uintptr
	algorithm     [8]uint64
	double        bool
	bias          bool
}

// ErrUnsupported reports a problem without an algorithm in the library.
var ErrUnsupported = errors.New("cuBLASLt has no algorithm for this product")

const (
	descTransA, descTransB, descEpilogue, descBiasPointer    = 3, 4, 7, 8
	preferWorkspace, preferAlignment                         = 1, 5 // the latter for A; those of B, C and D follow
	epilogueBias, statusNotSupported, statusInvalid, trans32 = 4, 15, 7, 1
)

// Plan asks the library for its best algorithm for a problem, with workspace bytes of scratch memory.
func (l *Library) Plan(p Problem, workspace int) (*Plan, error) {
	plan := &Plan{double: p.Compute == InF64, bias: p.Bias}
	scale := F32
	if plan.double {
		scale = F64
	}
	preference := uintptr(0)
	steps := []func() int32{
		func() int32 {
			return l.descCreate.Call(uintptr(unsafe.Pointer(&plan.desc)), uintptr(p.Compute), uintptr(scale))
		},
		func() int32 { return l.layout(&plan.a, p.A, p.M, p.K, p.TransA) },
		func() int32 { return l.layout(&plan.b, p.B, p.K, p.N, p.TransB) },
		func() int32 { return l.layout(&plan.d, p.D, p.M, p.N, false) },
		func() int32 { return l.preferenceCreate.Call(uintptr(unsafe.Pointer(&preference))) },
		func() int32 { return set(l.preferenceSet, preference, preferWorkspace, uint64(workspace)) },
		func() int32 { return l.transpose(plan.desc, descTransA, p.TransA) },
		func() int32 { return l.transpose(plan.desc, descTransB, p.TransB) },
	}
	if p.Bias {
		steps = append(steps, func() int32 { return set(l.descSet, plan.desc, descEpilogue, int32(epilogueBias)) })
	}
	for i := range 4 {
		steps = append(steps, func() int32 {
			return set(l.preferenceSet, preference, preferAlignment+i, uint32(p.Alignment))
		})
	}
	for _, step := range steps {
		if err := check("making a plan", step()); err != nil {
			return nil, err
		}
	}
	defer l.preferenceDestroy.Call(preference)
	var found struct {
		algorithm [8]uint64
		workspace uint64
		state     int32
		waves     float32
		_         [4]int32
	}
	var n int32
	status := l.heuristic.Call(l.handle, plan.desc, plan.a, plan.b, plan.d, plan.d, preference, 1,
		uintptr(unsafe.Pointer(&found)), uintptr(unsafe.Pointer(&n)))
	if status == statusNotSupported || status == statusInvalid || status == 0 && (n == 0 || found.state != 0) {
		l.Free(plan)
		return nil, ErrUnsupported
	}
	plan.algorithm = found.algorithm
	return plan, check("cublasLtMatmulAlgoGetHeuristic", status)
}

// layout creates the description of op(X) [rows, cols].
func (l *Library) layout(to *uintptr, t Type, rows, cols int, trans bool) int32 {
	if trans {
		rows, cols = cols, rows
	}
	return l.layoutCreate.Call(uintptr(unsafe.Pointer(to)), uintptr(t), uintptr(rows), uintptr(cols), uintptr(rows))
}

func (l *Library) transpose(desc uintptr, attribute int, trans bool) int32 {
	if !trans {
		return 0
	}
	return set(l.descSet, desc, attribute, int32(trans32))
}

// set sets an attribute of a description.
func set[V int32 | uint32 | uint64](f dynlib.Function, of uintptr, attribute int, v V) int32 {
	return f.Call(of, uintptr(attribute), uintptr(unsafe.Pointer(&v)), unsafe.Sizeof(v))
}

// Operands are the arguments of a plan.
type Operands struct {
	A, B, D, Bias, Workspace driver.Pointer
	WorkspaceSize            int
	Alpha, Beta              float64
}

// Run starts a product.
func (l *Library) Run(p *Plan, o *Operands, s driver.Stream) error {
	l.numbers = [3]uint64{scalar(o.Alpha, p.double), scalar(o.Beta, p.double), uint64(o.Bias)}
	if p.bias {
		l.args = [16]uintptr{
			p.desc, descBiasPointer, uintptr(unsafe.Pointer(&l.numbers[2])), unsafe.Sizeof(l.numbers[2]),
		}
		if err := check("cublasLtMatmulDescSetAttribute", l.descSet.CallWith(l.args[:4])); err != nil {
			return err
		}
	}
	l.args = [16]uintptr{
		l.handle, p.desc, uintptr(unsafe.Pointer(&l.numbers[0])), uintptr(o.A), p.a, uintptr(o.B), p.b,
		uintptr(unsafe.Pointer(&l.numbers[1])), uintptr(o.D), p.d, uintptr(o.D), p.d,
		uintptr(unsafe.Pointer(&p.algorithm)), uintptr(o.Workspace), uintptr(o.WorkspaceSize), uintptr(s),
	}
	return check("cublasLtMatmul", l.multiply.CallWith(l.args[:]))
}

// scalar returns the bits of x in the type of alpha and beta, float or double.
func scalar(x float64, double bool) uint64 {
	if double {
		return math.Float64bits(x)
	}
	return uint64(math.Float32bits(float32(x)))
}

// Free frees a plan.
func (l *Library) Free(p *Plan) {
	l.descDestroy.Call(p.desc)
	for _, layout := range []uintptr{p.a, p.b, p.d} {
		l.layoutDestroy.Call(layout)
	}
}
