package floats

import (
	"encoding/binary"
	"math"
)

// ToBF16 rounds to nearest, ties to even. NaN stays a quiet NaN.
func ToBF16(v float32) uint16 {
	u := math.Float32bits(v)
	if v != v {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// FromBF16 widens a bfloat16 value, exactly.
func FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ToF16 rounds to nearest, ties to even; values from 65520 on become infinity. NaN stays a quiet NaN.
func ToF16(v float32) uint16 {
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

// FromF16 widens an IEEE half-precision value, exactly.
func FromF16(h uint16) float32 {
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

// AppendF32 appends the bytes of values as F32.
func AppendF32(b []byte, values []float32) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// AppendBF16 appends the bytes of values, rounded to BF16.
func AppendBF16(b []byte, values []float32) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint16(b, ToBF16(v))
	}
	return b
}

// AppendF16 appends the bytes of values, rounded to F16.
func AppendF16(b []byte, values []float32) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint16(b, ToF16(v))
	}
	return b
}
