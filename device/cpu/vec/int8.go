package vec

import "math"

// packInt8 rounds numbers to int8 at random, so that the expectation is the number: the magnitude |scale·src|, at most
// 127·65536, is rounded to an integer first, ties to even, and a 16-bit random number carries into the upper half,
// which is kept. The codes are two's complement.
func packInt8[T Float](codes []byte, src []T, random []uint32, scale T) {
	src, random = src[:len(codes)], random[:len(codes)]
	for i, x := range src {
		code := min((int32(math.RoundToEven(float64(max(x, -x)*scale)))+int32(random[i]))>>16, 127)
		if x < 0 {
			code = -code
		}
		codes[i] = byte(code)
	}
}

func unpackInt8[T Float](dst []T, codes []byte, scale T) {
	codes = codes[:len(dst)]
	for i, c := range codes {
		dst[i] = T(int8(c)) * scale
	}
}
