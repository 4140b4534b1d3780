package flash

import (
	"math"

	"anneal/tensor"
)

// roundE4M3 rounds probabilities p, from 0 to 1, to 2⁻⁸·E4M3(2⁸·p), ties to even (device.Heads.FP8). E4M3 has three
// bits after the leading one, and 2⁻⁹ is its smallest number, so rounded p are multiples of 2⁻¹⁷.
func roundE4M3[T tensor.Number](p []T) {
	const (
		least = 0x1p-14  // the smallest normal number
		magic = 0x1.8p20 // adding and subtracting it leaves three bits of an FP32 number
	)
	for i, x := range p {
		x := float32(x)
		step := max(math.Float32frombits(math.Float32bits(x)&0x7f800000), least) * magic
		p[i] = T(x + step - step)
	}
}
