package tensor

import (
	"fmt"
	"unsafe"
)

// MaxRank is the largest number of dimensions of a Tensor.
const MaxRank = 4

// A Tensor is a dense, row-major span of memory with a dtype and a shape. It does not own its memory, which belongs
// to an Arena (or to the Go heap, for tensors from Of). The zero Tensor is empty and means "no tensor".
//
// The host cannot access the elements of a tensor in a device's own memory (Apart): methods that need them panic.
type Tensor struct {
	dtype DType
	rank  int8
	apart bool
	shape [MaxRank]int
	data  unsafe.Pointer
}

// View returns a tensor over data, which must hold the elements of shape in dtype.
func View(dtype DType, data []byte, shape ...int) Tensor {
	var t Tensor
	t.set(dtype, shape)
	if need := t.boundedBytes(); need > len(data) {
		panic(fmt.Sprintf("tensor: view of %v %s needs %d bytes, has %d", shape, dtype, need, len(data)))
	}
	t.data = unsafe.Pointer(unsafe.SliceData(data))
	return t
}

// Number is an element type that supports arithmetic in Go.
type Number interface{ ~float32 | ~float64 }

// Of returns a tensor on the Go heap with the given values, for tests and small tables.
func Of[E float32 | float64 | BFloat16 | Float16 | int32](values []E, shape ...int) *Tensor {
	if len(shape) == 0 {
		shape = []int{len(values)}
	}
	var t Tensor
	t.set(dtypeOf[E](), shape)
	if t.Len() != len(values) {
		panic(fmt.Sprintf("tensor: shape %v does not hold %d values", shape, len(values)))
	}
	t.data = unsafe.Pointer(unsafe.SliceData(values))
	return &t
}

func dtypeOf[E float32 | float64 | BFloat16 | Float16 | int32]() DType {
	switch any(*new(E)).(type) {
	case float32:
		return F32
	case float64:
		return F64
	case BFloat16:
		return BF16
	case Float16:
		return F16
	default:
		return I32
	}
}

func (t *Tensor) set(dtype DType, shape []int) {
	if len(shape) > MaxRank {
		panic(fmt.Sprintf("tensor: rank %d exceeds %d", len(shape), MaxRank))
	}
	for _, d := range shape {
		if d < 0 {
			panic(fmt.Sprintf("tensor: a dimension of %d", d))
		}
	}
	t.dtype, t.rank = dtype, int8(len(shape))
	copy(t.shape[:], shape)
}

// DType returns the storage format.
func (t *Tensor) DType() DType { return t.dtype }

// Rank returns the number of dimensions.
func (t *Tensor) Rank() int { return int(t.rank) }

// Dim returns the size of dimension i.
func (t *Tensor) Dim(i int) int { return t.shape[i] }

// Shape returns the dimensions. The slice aliases the tensor and must not be modified.
func (t *Tensor) Shape() []int { return t.shape[:t.rank] }

// Len returns the number of elements.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.shape[:t.rank] {
		n *= d
	}
	return n
}

// Bytes returns the size of the elements in bytes.
func (t *Tensor) Bytes() int {
	if t.dtype.Blocked() {
		return t.dtype.blockedBytes(t.Rows(), t.Cols())
	}
	return t.Len() * t.dtype.Size()
}

// IsZero reports whether t is the zero Tensor.
func (t *Tensor) IsZero() bool { return t == nil || t.dtype == Invalid }

// Cols returns the size of the last dimension. Kernels that work row by row treat every tensor as [Rows, Cols].
func (t *Tensor) Cols() int { return t.shape[t.rank-1] }

// Rows returns the product of all dimensions except the last.
func (t *Tensor) Rows() int {
	n := 1
	for _, d := range t.shape[:t.rank-1] {
		n *= d
	}
	return n
}

// Slice returns rows [from, to) of the first dimension as a tensor that shares t's memory.
func (t *Tensor) Slice(from, to int) Tensor {
	if from < 0 || to < from || to > t.shape[0] {
		panic(fmt.Sprintf("tensor: rows %d:%d of a tensor of %d", from, to, t.shape[0]))
	}
	if t.dtype.Blocked() {
		panic("tensor: rows of blocks lie among each other")
	}
	stride := 1
	for _, d := range t.shape[1:t.rank] {
		stride *= d
	}
	s := *t
	s.shape[0] = to - from
	if t.data != nil { // tensors of a measuring arena have no memory to point into
		s.data = unsafe.Add(t.data, from*stride*t.dtype.Size())
	}
	return s
}

// Reshape returns the same memory with another shape of equal length.
func (t *Tensor) Reshape(shape ...int) Tensor {
	s := *t
	s.set(t.dtype, shape)
	if s.Len() != t.Len() {
		panic(fmt.Sprintf("tensor: %d elements do not reshape to %d", t.Len(), s.Len()))
	}
	return s
}

// Apart reports whether the elements are in a device's own memory, which only that device can access.
func (t *Tensor) Apart() bool { return t.apart }

// Pointer returns the address of the elements: a device address if they are apart, nil without memory.
func (t *Tensor) Pointer() unsafe.Pointer { return t.data }

// F32 returns the elements of an F32 tensor.
func (t *Tensor) F32() []float32 { return elements[float32](t, F32) }

// F64 returns the elements of an F64 tensor.
func (t *Tensor) F64() []float64 { return elements[float64](t, F64) }

// BF16 returns the elements of a BF16 tensor.
func (t *Tensor) BF16() []BFloat16 { return elements[BFloat16](t, BF16) }

// F16 returns the elements of an F16 tensor.
func (t *Tensor) F16() []Float16 { return elements[Float16](t, F16) }

// I32 returns the elements of an I32 tensor.
func (t *Tensor) I32() []int32 { return elements[int32](t, I32) }

// Raw returns the bytes of the elements, in the machine's (little-endian) order.
func (t *Tensor) Raw() []byte {
	if t.apart {
		panic(t.outOfReach())
	}
	return unsafe.Slice((*byte)(t.data), t.Bytes())
}

func elements[E any](t *Tensor, want DType) []E {
	if t.dtype != want {
		panic(fmt.Sprintf("tensor: %v tensor read as %v", t.dtype, want))
	}
	if t.apart {
		panic(t.outOfReach())
	}
	return unsafe.Slice((*E)(t.data), t.Len())
}

// outOfReach is a separate function so that its callers are inlined.
func (t *Tensor) outOfReach() string {
	return fmt.Sprintf("tensor: %v is in device memory, which the host cannot access: use the device's Read or Write",
		t)
}

// Float64 returns element i as float64, for any float dtype. It is slow and meant for tests and reports.
func (t *Tensor) Float64(i int) float64 {
	switch t.dtype {
	case F32:
		return float64(t.F32()[i])
	case F64:
		return t.F64()[i]
	case BF16:
		return float64(t.BF16()[i].Float32())
	case F16:
		return float64(t.F16()[i].Float32())
	default:
		panic(fmt.Sprintf("tensor: Float64 of %v", t.dtype))
	}
}

// SetFloat64 rounds v to the tensor's dtype and stores it as element i.
func (t *Tensor) SetFloat64(i int, v float64) {
	switch t.dtype {
	case F32:
		t.F32()[i] = float32(v)
	case F64:
		t.F64()[i] = v
	case BF16:
		t.BF16()[i] = BF16FromFloat32(float32(v))
	case F16:
		t.F16()[i] = F16FromFloat32(float32(v))
	default:
		panic(fmt.Sprintf("tensor: SetFloat64 of %v", t.dtype))
	}
}

// String describes the tensor, not its elements: "bf16[4096 384]".
func (t *Tensor) String() string { return fmt.Sprintf("%v%v", t.dtype, t.Shape()) }
