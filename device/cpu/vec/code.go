package vec

import (
	"math"

	"anneal/tensor"
)

// A Code is 256 numbers in rising order, one of them 0, for blocks of 8-bit numbers: tensor.Dynamic8. The assembly reads the
// fields at their offsets.
type Code[T Float] struct {
	Values [256]T
	Mids   [256]T // Mids[i] lies in the middle between values i and i+1; the last is infinite

	// First finds the code of a magnitude x: it is First[i] or the next, where i is the part of x's float32 bits from the 7th
	// of the mantissa up, counted from firstBits; at most one middle lies between numbers that share it.
	First [firstLen + 3]byte // read four at a time
	Zero  int                // the code of 0
}

const (
	firstBits = (127 - 24) << 7 // 2⁻²⁴, below every middle
	firstLen  = 24<<7 + 1       // up to 1
)

// NewCode returns the dynamic format, signed or not.
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
	for i := 1; i < firstLen; i++ {
		c.First[i] = c.nearest(T(math.Float32frombits(uint32(i+firstBits) << 16)))
	}
	c.First[0] = byte(c.Zero)
	return c
}

// nearest returns the code of a number x of at least 0, by definition: the first that is at least as near as the next.
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

// encode rounds scale·src to the nearest numbers of the code, halves towards 0. A number without a counterpart of the other
// sign has its neighbour's.
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
