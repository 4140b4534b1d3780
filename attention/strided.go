package attention

import (
	"fmt"
	"math"

	"anneal/device"
)

// Strided is the strided form of the Sparse Transformer (Child et al. 2019, arXiv 1904.10509): heads alternate
// between a window and the tokens at multiples of a stride. Two consecutive layers reach every token.
//
//	heads 0, 2, …: query i sees keys i−L+1 … i
//	heads 1, 3, …: query i sees keys j with (i−j) mod L = 0
//
// Text: strided:STRIDE; by default √T, rounded to a multiple of 64. Time: about T·(L + T/2L)/2 pairs, T^1.5 for L
// near √T. It suits data with a period L, such as the pixels of images or the samples of music. On text, fixed is
// better.
type Strided struct{ Stride int }

func readStrided(text string, options []string) (Pattern, error) {
	var s Strided
	err := read(text, options, option{"stride", &s.Stride, 1})
	return s, err
}

// String implements Pattern.
func (s Strided) String() string {
	if s.Stride == 0 {
		return "strided"
	}
	return fmt.Sprintf("strided:%d", s.Stride)
}

// Resolve implements Pattern.
func (s Strided) Resolve(length int, _ uint64) Pattern {
	if s.Stride == 0 {
		s.Stride = root(length)
	}
	return s
}

// Check implements Pattern.
func (s Strided) Check(_, heads int) error {
	if heads < 2 {
		return &Error{fmt.Sprintf("%s needs two heads: one for the window and one for the stride", s),
			fmt.Sprintf("two or more heads, or window:%d", s.Stride)}
	}
	return nil
}

func (s Strided) entries(length, _ int) float64 {
	return 4*tiles(length) + 2*float64(min(s.Stride, length))
}

func (s Strided) layout(length, heads, _ int) *device.Layout {
	var strips []device.QueryBlock
	for rest := range min(s.Stride, length) {
		strips = append(strips, queries(rest, s.Stride, length, func(q device.Strip) []device.KeyRange {
			return []device.KeyRange{until(rest, s.Stride, after(q))}
		})...)
	}
	return cycled([]device.Graph{{Blocks: local(s.Stride, 0, length)}, {Blocks: strips}}, length, heads)
}

// until returns keys first, first+step, … before end.
func until(first, step, end int) device.KeyRange {
	return device.KeyRange{
		Strip: device.Strip{First: first, Step: step, Count: (end - first + step - 1) / step}, Far: everywhere,
	}
}

// root returns √length rounded to a positive multiple of 64.
func root(length int) int { return max(int(math.Round(math.Sqrt(float64(length))/64)), 1) * 64 }
