package vec

import (
	"math"

	"anneal/tensor"
)

// A Code is 256 numbers in ascending order, one of them 0, for blocks of 8-bit numbers: tensor.Dynamic8. The assembly
// reads the fields at their offsets.
type Code[T Float] struct {
	Values [256]T
	Mids   [256]T // Mids[i] is the most that has code i: the midpoint of values i and i+1; the last is infinite

	// Slopes and Offsets define one line per decade: the codes of its numbers as a function of the numbers. The lines
	// of larger decades are flatter, so the minimum over the lines at a number is the line of its own decade. Let k
	// be the integer part of that minimum at x ≥ 0. Then x is nearest to number k of Zero, Zero+1, … or to the next
	// one: the offsets are lowered by ¼, because the midpoints near the ends of a decade are up to 0.25 above their
	// lines. The last line is repeated, for vectors of lines and of the next ones.
	Slopes, Offsets [7 + 2]T

	// Near holds, for numbers of at least 2⁻²⁴, the one or two lines that can be the minimum: the slopes of the lower
	// and of the higher decade, and their offsets. It is indexed by the last four of the upper bits of float32, for
	// exponents in pairs.
	Near [4][16]T

	Decades [16]uint8 // the number of the lower line of Near, of which the next one is the higher, or it is both

	// Bins divides the numbers from 2⁻²⁴ to 1 by the upper 16 bits of float32, so finely that a bin has at most one
	// midpoint. Bins[i] is the first code in bin i, less Zero; beyond the midpoint the code is the next one. Bin 0
	// also has all smaller numbers.
	Bins [24<<7 + 1]uint8

	Zero int // the code of 0
}

// NewCode returns the dynamic format, signed or not. Without signs only 0 has the code of 0: a second moment that
// became 0 would forget all gradients but the next.
func NewCode[T Float](signed bool) *Code[T] {
	c := &Code[T]{}
	values := tensor.Dynamic8(signed)
	for i, x := range values {
		c.Values[i] = T(x)
		c.Mids[i] = T(math.Inf(1))
		if i < 255 {
			c.Mids[i] = (T(x) + T(values[i+1])) / 2
		}
		if x == 0 {
			c.Zero = i
		}
	}
	if !signed {
		c.Mids[0] = 0
	}
	for d := range 7 {
		// The decade from top/10 to top has intervals numbers, starting at first.
		intervals, first, top := float64(int(1)<<d), float64(int(1)<<d), math.Pow(10, float64(d-6))
		if !signed {
			intervals, first = 2*intervals, 2*first-1
		}
		c.Slopes[d] = T(intervals / (0.9 * top))
		c.Offsets[d] = T(first - intervals/9 - 0.25)
	}
	for d := range 2 {
		c.Slopes[7+d], c.Offsets[7+d] = c.Slopes[6], c.Offsets[6]
	}
	for i := range 16 {
		low := math.Ldexp(1, 2*(i-15)-1) // the pair holds numbers up to 4·low
		c.Decades[i] = uint8(decadeOf(low))
		for line, x := range [2]float64{low, 4 * low} {
			d := decadeOf(x)
			c.Near[line][i], c.Near[2+line][i] = c.Slopes[d], c.Offsets[d]
		}
	}
	for i := range c.Bins {
		c.Bins[i] = c.nearest(T(math.Float32frombits((127-24)<<23+uint32(i)<<16))) - byte(c.Zero)
	}
	c.Bins[0] = 0
	return c
}

// decadeOf returns the number of the line of x.
func decadeOf(x float64) int { return min(max(int(math.Floor(math.Log10(x)))+7, 0), 6) }

// nearest returns the code of a number x of at least 0, by definition: the first one whose numbers reach x.
func (c *Code[T]) nearest(x T) byte {
	low, high := c.Zero, 255
	for low < high {
		if i := (low + high) / 2; x <= c.Mids[i] {
			high = i
		} else {
			low = i + 1
		}
	}
	return byte(low)
}

// encode rounds scale·src to the nearest numbers of the code, ties towards 0, and without signs only 0 to 0. A number
// without a counterpart of the other sign uses its neighbour's.
func encode[T Float](codes []byte, src []T, c *Code[T], scale T) {
	src = src[:len(codes)]
	for i, x := range src {
		x *= scale
		if x >= 0 || c.Zero == 0 {
			codes[i] = c.nearest(x)
		} else {
			codes[i] = byte(2*c.Zero - min(int(c.nearest(-x)), 2*c.Zero))
		}
	}
}

func decode[T Float](dst []T, codes []byte, c *Code[T], scale T) {
	codes = codes[:len(dst)]
	for i, k := range codes {
		dst[i] = c.Values[k] * scale
	}
}
