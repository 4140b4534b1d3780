package conformance

import (
	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// dropout draws random factors, none where everything survives, over a part of a step's rows.
func dropout(s *scope) call {
	n, m := s.size("n"), s.size("m")
	if rapid.IntRange(0, 3).Draw(s.T, "wide") == 0 {
		m += rapid.IntRange(900, 1300).Draw(s.T, "columns more")
	}
	src := s.random(s.storage("src"), n, m)
	dst := src
	o := device.Dropout{
		RNG:   tensor.NewRNG(rapid.Uint64().Draw(s.T, "key"), tensor.PurposeDropout, rapid.Uint32().Draw(s.T, "step")),
		Site:  rapid.IntRange(0, 1<<16-1).Draw(s.T, "site"),
		Row:   rapid.SampledFrom([]int{0, 1, 1000, 1<<32 - 1 - n}).Draw(s.T, "row"),
		Keep:  rapid.SampledFrom([]int{1, 1 << 12, 58982, 1<<16 - 1, 1 << 16}).Draw(s.T, "keep"),
		Scale: rapid.Float64Range(0.5, 3).Draw(s.T, "scale"),
	}
	if !rapid.Bool().Draw(s.T, "in place") {
		dst, o.Add = s.empty(s.storage("dst"), n, m), rapid.Bool().Draw(s.T, "add")
		if o.Add {
			s.fill(dst)
		}
	}
	r := call{run: func(d device.Device) { d.Dropout(dst, src, o) }, out: []*tensor.Tensor{dst}}
	r.formulas(dropoutOf[float64](dst, src, o), dropoutOf[float32](dst, src, o))
	return r
}

func dropoutOf[T tensor.Number](dst, src *tensor.Tensor, o device.Dropout) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		x, sum := read[T](src, w), read[T](dst, w)
		for i := range x {
			r, j := uint64(o.Row+i/src.Cols()), uint64(i%src.Cols())
			number := o.RNG.Block(r<<32 + uint64(o.Site)<<16 + j/128*16 + j%16)[j%128/32] >>
				(j % 32 / 16 * 16) % (1 << 16)
			if x[i] *= T(o.Scale); int(number) >= o.Keep {
				x[i] = 0
			}
			if o.Add {
				x[i] += sum[i]
			}
		}
		return [][]T{x}
	}
}
