package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"anneal/internal/floats"
)

// Float32 returns a Tensor of float32 values, stored as F32, or rounded to nearest even as BF16 or F16 on writing.
func Float32(name string, dtype DType, shape []int, data []float32) Tensor {
	return Float32From(name, dtype, shape, len(data), floats.Of(data))
}

// Float32From is Float32 for n values that are produced when they are written, so that they need not exist at the same
// time.
func Float32From(name string, dtype DType, shape []int, n int, values floats.Values) Tensor {
	encode := map[DType]func([]byte, []float32) []byte{
		F32: floats.AppendF32, BF16: floats.AppendBF16, F16: floats.AppendF16,
	}[dtype]
	t := Tensor{Name: name, DType: dtype, Shape: shape}
	if t.Data = floats.NewStream(n, values, encode); encode == nil {
		t.Data = unstorable(dtype)
	}
	return t
}

// unstorable returns an error on reading: float32 values cannot be stored in a dtype that is not a float.
type unstorable DType

func (d unstorable) Read([]byte) (int, error) {
	return 0, fmt.Errorf("float32 values can be stored as F32, BF16 or F16, not %s", DType(d))
}

// Source is a File or a Set.
type Source interface {
	Lookup(name string) (Info, bool)
	ReadAt(name string, p []byte, off int64) error
}

// ReadFloat32 fills dst with all elements of a tensor stored as F32, BF16, F16 or F64 (rounded to nearest). dst must
// have exactly as many elements as the tensor. It uses a buffer of 64 KiB.
func ReadFloat32(src Source, name string, dst []float32) error {
	t, ok := src.Lookup(name)
	if !ok {
		return fmt.Errorf("safetensors: no tensor %q", name)
	}
	var width int
	var decode func(b []byte) float32
	switch t.DType {
	case F32:
		width, decode = 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
	case BF16:
		width, decode = 2, func(b []byte) float32 { return floats.FromBF16(binary.LittleEndian.Uint16(b)) }
	case F16:
		width, decode = 2, func(b []byte) float32 { return floats.FromF16(binary.LittleEndian.Uint16(b)) }
	case F64:
		width, decode = 8, func(b []byte) float32 {
			return float32(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
	default:
		return fmt.Errorf("safetensors: tensor %q is %s, want F32, BF16, F16 or F64", name, t.DType)
	}
	if int64(len(dst))*int64(width) != t.Size {
		return fmt.Errorf("safetensors: tensor %q has shape %v, but the destination has %d elements",
			name, t.Shape, len(dst))
	}
	buf := make([]byte, 64<<10)
	for off := int64(0); len(dst) > 0; {
		k := min(len(dst), len(buf)/width)
		if err := src.ReadAt(name, buf[:k*width], off); err != nil {
			return err
		}
		for i := range k {
			dst[i] = decode(buf[i*width:])
		}
		dst, off = dst[k:], off+int64(k*width)
	}
	return nil
}
