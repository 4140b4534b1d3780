package tensor

import "math"

// BFloat16 is the upper half of a float32: 8 exponent bits, 7 mantissa bits.
type BFloat16 uint16

// Float32 widens b; the conversion is exact.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// BF16FromFloat32 rounds f to the nearest bfloat16, ties to even. A NaN stays a (quiet) NaN.
func BF16FromFloat32(f float32) BFloat16 {
	u := math.Float32bits(f)
	if u&0x7fffffff > 0x7f800000 {
		return BFloat16(u>>16 | 0x40)
	}
	return BFloat16((u + 0x7fff + u>>16&1) >> 16)
}

// BF16Stochastic rounds f up or down at random, so that the expectation of the result is f, using the low 16 bits of
// random. Values that bfloat16 represents exactly never change.
func BF16Stochastic(f float32, random uint32) BFloat16 {
	u := math.Float32bits(f)
	if u&0x7f800000 == 0x7f800000 { // Inf or NaN
		return BF16FromFloat32(f)
	}
	return BFloat16((u + random&0xffff) >> 16)
}
