package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Float32 returns a Tensor of float32 values, stored as F32, or rounded to nearest even as BF16 or F16 on writing.
func Float32(name string, dtype DType, shape []int, data []float32) Tensor {
	return Tensor{Name: name, DType: dtype, Shape: shape, Data: &float32Reader{dtype, data}}
}

// float32Reader encodes values as they are read. Reads shorter than one element are errors; io.Copy makes none.
type float32Reader struct {
	dtype DType
	rest  []float32
}

func (r *float32Reader) Read(p []byte) (n int, err error) {
	width, narrow := 2, bfloat16
	switch r.dtype {
	case F32:
		width = 4
	case F16:
		narrow = toFloat16
	case BF16:
	default:
		return 0, fmt.Errorf("float32 values can be stored as F32, BF16 or F16, not %s", r.dtype)
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	if len(p) < width {
		return 0, io.ErrShortBuffer
	}
	k := min(len(p)/width, len(r.rest))
	for i, v := range r.rest[:k] {
		if width == 4 {
			binary.LittleEndian.PutUint32(p[4*i:], math.Float32bits(v))
		} else {
			binary.LittleEndian.PutUint16(p[2*i:], narrow(v))
		}
	}
	r.rest = r.rest[k:]
	return k * width, nil
}

// bfloat16 rounds to nearest, ties to even. NaN stays a quiet NaN.
func bfloat16(v float32) uint16 {
	u := math.Float32bits(v)
	if v != v {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// toFloat16 rounds to nearest, ties to even; values from 65520 on become infinity. NaN stays a quiet NaN.
func toFloat16(v float32) uint16 {
	u := math.Float32bits(v)
	sign := uint16(u>>16) & 0x8000
	switch u &= 0x7fffffff; {
	case v != v:
		return sign | 0x7e00
	case u >= 0x477ff000:
		return sign | 0x7c00
	case u < 0x38800000: // subnormal: multiples of 2⁻²⁴, the last bit of a sum with ½
		sum := math.Float32frombits(u) + 0.5
		return sign | uint16(math.Float32bits(sum)-math.Float32bits(0.5))
	}
	return sign | uint16((u-112<<23+0xfff+u>>13&1)>>13)
}

// float16 widens an IEEE half-precision value, exactly.
func float16(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&0x3ff
	switch exp {
	case 0:
		v := float32(frac) * (1.0 / (1 << 24)) // zero and subnormals
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
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
		width, decode = 2, func(b []byte) float32 {
			return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
		}
	case F16:
		width, decode = 2, func(b []byte) float32 { return float16(binary.LittleEndian.Uint16(b)) }
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
