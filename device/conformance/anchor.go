package conformance

import (
	"anneal/device"
	"anneal/tensor"
)

func anchor(s *scope) call {
	n := s.size("n") * s.size("m")
	p, start, weight := s.random(s.wide, n), s.random(s.wide, n), s.positive(s.wide, n)
	const rate = 0.7
	c := call{run: func(d device.Device) { d.Anchor(p, start, weight, rate) }, out: []*tensor.Tensor{p}}
	c.formulas(anchorOf[float64](p, start, weight, rate), anchorOf[float32](p, start, weight, rate))
	return c
}

func anchorOf[T tensor.Number](p, start, weight *tensor.Tensor, rate float64) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		x, y, z := read[T](p, w), read[T](start, w), read[T](weight, w)
		for i := range x {
			x[i] = (x[i] + T(rate)*z[i]*y[i]) / (1 + T(rate)*z[i])
		}
		return [][]T{x}
	}
}
