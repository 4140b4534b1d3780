//go:build amd64 || arm64

package vec

import "anneal/tensor"

// bfloat16 and float16 are the names that the generated declarations use.
type (
	bfloat16 = tensor.BFloat16
	float16  = tensor.Float16
)

// wholePairs extends code for whole vectors of n elements to any length.
func wholePairs(n int, f func(x, cos, sin []float32)) func(x, cos, sin []float32) {
	return func(x, cos, sin []float32) {
		whole := len(x) &^ (n - 1)
		f(x[:whole], cos, sin)
		rotatePairs(x[whole:], cos[whole/2:], sin[whole/2:])
	}
}

// wholePackInt8 and wholeUnpackInt8 extend code for whole vectors of n elements to any length.
func wholePackInt8(n int, f func([]byte, []float32, []uint32, float32)) func([]byte, []float32, []uint32, float32) {
	return func(codes []byte, src []float32, random []uint32, scale float32) {
		whole := len(codes) &^ (n - 1)
		f(codes[:whole], src, random, scale)
		packInt8(codes[whole:], src[whole:], random[whole:], scale)
	}
}

func wholeUnpackInt8(n int, f func([]float32, []byte, float32)) func([]float32, []byte, float32) {
	return func(dst []float32, codes []byte, scale float32) {
		whole := len(dst) &^ (n - 1)
		f(dst[:whole], codes, scale)
		unpackInt8(dst[whole:], codes[whole:], scale)
	}
}

// wholeDecode and wholeEncode extend code for whole vectors of n elements to any length.
func wholeDecode(n int, f func([]float32, []byte, *Code[float32], float32)) func([]float32, []byte,
	*Code[float32], float32) {
	return func(dst []float32, codes []byte, c *Code[float32], scale float32) {
		whole := len(dst) &^ (n - 1)
		f(dst[:whole], codes, c, scale)
		decode(dst[whole:], codes[whole:], c, scale)
	}
}

func wholeEncode(n int, unsigned, signed func([]byte, []float32, *Code[float32], float32)) func([]byte, []float32,
	*Code[float32], float32) {
	return func(codes []byte, src []float32, c *Code[float32], scale float32) {
		whole, f := len(codes)&^(n-1), unsigned
		if c.Zero > 0 {
			f = signed
		}
		f(codes[:whole], src, c, scale)
		encode(codes[whole:], src[whole:], c, scale)
	}
}
