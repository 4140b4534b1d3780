package conformance

import (
	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// shortConv draws a convolution: inputs [N, C], taps [C, k] and rows of documents.
func (s *scope) shortConv() (x, taps *tensor.Tensor, mask device.Mask) {
	rows, cols := rapid.IntRange(1, 3).Draw(s.T, "B"), s.size("C")
	mask = s.mask(rows)
	return s.random(s.act, rows*mask.Len, cols), s.random(s.wide, cols, rapid.IntRange(1, 16).Draw(s.T, "k")), mask
}

func shortConv(s *scope) call {
	x, taps, mask := s.shortConv()
	out := s.empty(s.act, x.Rows(), x.Cols())
	c := call{run: func(d device.Device) { d.ShortConv(out, x, taps, mask) }, out: []*tensor.Tensor{out}, factor: 4}
	c.formulas(shortConvOf[float64](x, taps, mask), shortConvOf[float32](x, taps, mask))
	return c
}

func shortConvGrad(s *scope) call {
	x, taps, mask := s.shortConv()
	dx, dout, dtaps := s.empty(s.act, x.Rows(), x.Cols()), s.random(s.act, x.Rows(), x.Cols()),
		s.random(s.wide, x.Cols(), taps.Cols())
	c := call{
		run:    func(d device.Device) { d.ShortConvGrad(dx, dtaps, dout, x, taps, mask) },
		out:    []*tensor.Tensor{dx, dtaps},
		factor: 4,
	}
	c.formulas(shortConvGradOf[float64](dtaps, dout, x, taps, mask),
		shortConvGradOf[float32](dtaps, dout, x, taps, mask))
	return c
}

// eachTap calls f for every element of x, with the places in x that it reads and the places of their taps, its own
// place first.
func eachTap(x, taps *tensor.Tensor, mask device.Mask, f func(at int, reads, by []int)) {
	k, cols, start := taps.Cols(), x.Cols(), starts(mask)
	for at := range x.Len() {
		i, c, first := at/cols, at%cols, 0
		if start != nil {
			first = int(start[i])
		}
		var reads, by []int
		for d := 0; d < k && i%mask.Len-d >= first; d++ {
			reads, by = append(reads, at-d*cols), append(by, c*k+k-1-d)
		}
		f(at, reads, by)
	}
}

func shortConvOf[T tensor.Number](x, taps *tensor.Tensor, mask device.Mask) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		in, by := read[T](x, w), read[T](taps, w)
		out := make([]T, len(in))
		eachTap(x, taps, mask, func(at int, reads, tap []int) {
			var z T
			for n, i := range reads {
				z += by[tap[n]] * in[i]
			}
			out[at] = z / (1 + exp(-z))
		})
		return [][]T{out}
	}
}

func shortConvGradOf[T tensor.Number](dtaps, dout, x, taps *tensor.Tensor, mask device.Mask) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		in, by, do, dby := read[T](x, w), read[T](taps, w), read[T](dout, w), read[T](dtaps, w)
		dx := make([]T, len(in))
		eachTap(x, taps, mask, func(at int, reads, tap []int) {
			var z T
			for n, i := range reads {
				z += by[tap[n]] * in[i]
			}
			open := 1 / (1 + exp(-z))
			g := do[at] * open * (1 + z*(1-open))
			for n, i := range reads {
				dx[i] += g * by[tap[n]]
				dby[tap[n]] += g * in[i]
			}
		})
		return [][]T{dx, dby}
	}
}
