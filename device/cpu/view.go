package cpu

import (
	"unsafe"

	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// A view presents the elements of a tensor as T, whatever its storage. If the storage is T, load and room return the
// tensor's own memory and store does nothing; otherwise the elements go through the caller's buffer.
type view[T vec.Float] struct {
	native []T
	bf16   []tensor.BFloat16
	f16    []tensor.Float16
	f32    []float32 // float32 storage seen as float64
	cols   int       // size of the last dimension
	vec    *vec.Table[T]
}

func (e *engine[T]) view(t *tensor.Tensor) view[T] {
	v := view[T]{cols: t.Cols(), vec: &e.vec}
	switch {
	case t.DType() == nativeType[T]():
		v.native = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(t.Raw()))), t.Len())
	case t.DType() == tensor.BF16:
		v.bf16 = t.BF16()
	case t.DType() == tensor.F16:
		v.f16 = t.F16()
	case t.DType() == tensor.F32:
		v.f32 = t.F32()
	default:
		panic("cpu: a " + t.DType().String() + " tensor cannot be computed with")
	}
	return v
}

func nativeType[T vec.Float]() tensor.DType {
	if unsafe.Sizeof(*new(T)) == 8 {
		return tensor.F64
	}
	return tensor.F32
}

// load returns elements [from, from+n), converted into buf unless the storage is T.
func (v *view[T]) load(buf []T, from, n int) []T {
	if v.native != nil {
		return v.native[from : from+n]
	}
	buf = buf[:n]
	switch {
	case v.bf16 != nil:
		v.vec.Unpack(buf, v.bf16[from:from+n])
	case v.f16 != nil:
		v.vec.UnpackF16(buf, v.f16[from:from+n])
	default:
		for i, x := range v.f32[from : from+n] {
			buf[i] = T(x)
		}
	}
	return buf
}

// room returns memory in which to compute elements [from, from+n): the tensor's, or buf.
func (v *view[T]) room(buf []T, from, n int) []T {
	if v.native != nil {
		return v.native[from : from+n]
	}
	return buf[:n]
}

// narrow returns the primitives that work directly on rows of n elements of bfloat16 storage, or nil if the tier has
// none or a view has other storage.
func (e *engine[T]) narrow(n int, views ...*view[T]) *vec.Narrow[T] {
	p := e.vec.Narrow
	if p == nil || n%p.Multiple != 0 {
		return nil
	}
	for _, v := range views {
		if v.bf16 == nil {
			return nil
		}
	}
	return p
}

// store rounds a row that load or room returned to the tensor's storage.
func (v *view[T]) store(row []T, from int) {
	switch {
	case v.native != nil:
	case v.bf16 != nil:
		v.vec.Pack(v.bf16[from:from+len(row)], row)
	case v.f16 != nil:
		v.vec.PackF16(v.f16[from:from+len(row)], row)
	default:
		for i, x := range row {
			v.f32[from+i] = float32(x)
		}
	}
}

// bf16 returns the tier's primitives on bfloat16, or the zero value if it has none.
func (e *engine[T]) bf16() vec.Narrow[T] {
	if e.vec.Narrow == nil {
		return vec.Narrow[T]{}
	}
	return *e.vec.Narrow
}
