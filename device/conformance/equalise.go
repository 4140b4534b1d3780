package conformance

import (
	"math"

	"anneal/device"
	"anneal/tensor"
)

func equaliseRows(s *scope) call {
	m, n := s.size("M"), s.size("N")
	u, v := s.positive(s.wide, m, n), s.positive(s.wide, m)
	const beta = 0.95
	c := call{run: func(d device.Device) { d.EqualiseRows(u, v, beta) }, out: []*tensor.Tensor{u, v}}
	c.formulas(equaliseRowsOf[float64](u, v, beta), equaliseRowsOf[float32](u, v, beta))
	return c
}

func equaliseRowsOf[T tensor.Number](u, v *tensor.Tensor, beta float64) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		x, y := read[T](u, w), read[T](v, w)
		cols := u.Cols()
		for r := range y {
			var sum T
			for _, a := range x[r*cols:][:cols] {
				sum += a * a
			}
			y[r] = T(beta)*y[r] + T(1-beta)*sum/T(cols)
			for c := range cols {
				x[r*cols+c] /= T(math.Sqrt(float64(y[r]))) + 1e-10
			}
		}
		return [][]T{x, y}
	}
}
