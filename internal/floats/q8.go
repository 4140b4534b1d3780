package floats

import "math"

// Q8Block is how many values share a scale in 8 bits.
const Q8Block = 32

// ToQ8 writes the codes of 32 values in 8 bits, and returns their scale, max|x|/127 rounded to F16. Codes are the
// integers nearest to x/scale, with the scale as it was before rounding; halves are rounded away from zero. These are
// the numbers of GGUF's Q8_0.
func ToQ8(codes *[Q8Block]int8, values *[Q8Block]float32) (scale uint16) {
	top := float32(0)
	for _, x := range values {
		top = max(top, float32(math.Abs(float64(x)))) // NaN wins
	}
	d := top / 127
	inverse := float32(0)
	if d != 0 {
		inverse = 1 / d
	}
	for i, x := range values {
		codes[i] = int8(math.Round(float64(x * inverse)))
	}
	return ToF16(d)
}
