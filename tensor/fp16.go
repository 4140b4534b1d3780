package tensor

import "math"

// Float16 is IEEE 754 binary16: 5 exponent bits, 10 mantissa bits, largest value 65504. Both conversions give the
// same bits as the F16C instructions, including payloads of NaN.
type Float16 uint16

// Float32 widens h; the conversion is exact.
func (h Float16) Float32() float32 {
	sign, rest := uint32(h>>15)<<31, uint32(h&0x7fff)
	switch {
	case rest > 0x7c00: // NaN, made quiet
		return math.Float32frombits(sign | 0x7fc00000 | rest<<13)
	case rest == 0x7c00:
		return math.Float32frombits(sign | 0x7f800000)
	}
	// The shifted bits have an exponent bias off by 112; one exact product corrects it, for subnormals too.
	f := math.Float32frombits(rest<<13) * 0x1p112
	return math.Float32frombits(math.Float32bits(f) | sign)
}

// F16FromFloat32 rounds f to the nearest binary16, ties to even; from 65520 on the result is infinite.
func F16FromFloat32(f float32) Float16 {
	u := math.Float32bits(f)
	sign := Float16(u>>16) & 0x8000
	u &= 0x7fffffff
	switch {
	case u > 0x7f800000: // NaN, made quiet
		return sign | 0x7e00 | Float16(u>>13)&0x1ff
	case u >= 0x477ff000: // 65520
		return sign | 0x7c00
	case u < 0x38800000: // 2⁻¹⁴: subnormal. The last bit of a sum with ½ is 2⁻²⁴, the unit of subnormals.
		sum := math.Float32frombits(u) + 0.5
		return sign | Float16(math.Float32bits(sum)-math.Float32bits(0.5))
	}
	return sign | Float16((u-112<<23+0xfff+u>>13&1)>>13)
}

// RoundTF32 rounds f to a 10-bit mantissa, ties away from zero, as the cvt.rna.tf32 instruction does.
func RoundTF32(f float32) float32 {
	u := math.Float32bits(f)
	if u&0x7f800000 == 0x7f800000 {
		return f
	}
	return math.Float32frombits((u + 0x1000) &^ 0x1fff)
}

// packSmall rounds f, ties to even, to a format of 1 sign, e exponent and m mantissa bits. With inf the top exponent
// means infinity and NaN, as in IEEE 754. Without inf only the all-ones code is NaN (the "fn" formats), and overflow
// gives NaN.
func packSmall(f float32, e, m uint, inf bool) uint32 {
	u := math.Float32bits(f)
	sign := u >> 31 << (e + m)
	top := uint32(1)<<e - 1
	nan := sign | top<<m | (1<<m - 1)
	if inf {
		nan = sign | top<<m | 1<<(m-1)
	}
	if f != f {
		return nan
	}
	bias := 1<<(e-1) - 1
	exp := int(u>>23&0xff) - 127
	if exp == -127 || exp < -bias-int(m)-1 { // float32 subnormals and all below half the smallest subnormal
		return sign
	}
	mant := u&0x7fffff | 0x800000
	shift := 23 - m
	code := uint32(0)
	if exp < 1-bias { // subnormal: the leading one becomes part of the mantissa
		shift += uint(1 - bias - exp)
	} else {
		code = uint32(exp+bias-1) << m
	}
	half := uint32(1)<<(shift-1) - 1 + mant>>shift&1
	code += (mant + half) >> shift
	if inf && code >= top<<m {
		return sign | top<<m
	}
	if !inf && code >= top<<m|(1<<m-1) {
		return nan
	}
	return sign | code
}

// unpackSmall is the inverse of packSmall; every code is exact in float64.
func unpackSmall(c uint32, e, m uint, inf bool) float64 {
	top := uint32(1)<<e - 1
	exp, mant := c>>m&top, c&(1<<m-1)
	bias := 1<<(e-1) - 1
	var v float64
	switch {
	case inf && exp == top && mant == 0:
		v = math.Inf(1)
	case inf && exp == top, !inf && exp == top && mant == 1<<m-1:
		v = math.NaN()
	case exp == 0:
		v = math.Ldexp(float64(mant), 1-bias-int(m))
	default:
		v = math.Ldexp(float64(mant|1<<m), int(exp)-bias-int(m))
	}
	if c>>(e+m)&1 == 1 {
		v = -v
	}
	return v
}
