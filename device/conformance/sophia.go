package conformance

import (
	"math"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// sophia draws curvatures, some of which clip. Momenta are not subnormal: a device may take subnormal numbers for 0,
// which would change a cautious decay, as it depends on the sign.
func sophia(s *scope) call {
	n := s.size("n") * s.size("m")
	p, g, m, h := s.random(s.wide, n), s.random(s.wide, n), s.positive(s.wide, n), s.positive(s.wide, n)
	for i := 1; i < n; i += 2 {
		m.SetFloat64(i, -m.Float64(i))
	}
	o := device.Sophia{
		LR: 1e-2, Beta1: 0.9, Rho: 0.5, Decay: 0.1, Scale: 0.25, Cautious: rapid.Bool().Draw(s.T, "cautious"),
	}
	inside := s.empty(tensor.F64, 1)
	c := call{
		run: func(d device.Device) { inside.F64()[0] = float64(d.Sophia(p, g, m, h, o)) },
		out: []*tensor.Tensor{p, m, inside},
	}
	c.formulas(sophiaOf[float64](p, g, m, h, o), sophiaOf[float32](p, g, m, h, o))
	return c
}

func sophiaOf[T tensor.Number](p, g, m, h *tensor.Tensor, o device.Sophia) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		x, d, y, z := read[T](p, w), read[T](g, w), read[T](m, w), read[T](h, w)
		var inside T
		for i := range x {
			y[i] = T(o.Beta1)*y[i] + T(1-o.Beta1)*T(o.Scale)*d[i]
			r := T(math.Abs(float64(y[i]))) / (T(o.Rho)*z[i] + 1e-15)
			if r < 1 {
				inside++
			}
			x[i] = fall(x[i], T(o.LR)*T(math.Copysign(float64(min(r, 1)), float64(y[i]))), T(o.LR*o.Decay), o.Cautious)
		}
		return [][]T{x, y, {inside}}
	}
}

func meanSquare(s *scope) call {
	n := s.size("n") * s.size("m")
	h, g := s.positive(s.wide, n), s.random(s.wide, n)
	const beta, weight = 0.99, 0.3
	c := call{run: func(d device.Device) { d.MeanSquare(h, g, beta, weight) }, out: []*tensor.Tensor{h}}
	c.formulas(meanSquareOf[float64](h, g, beta, weight), meanSquareOf[float32](h, g, beta, weight))
	return c
}

func meanSquareOf[T tensor.Number](h, g *tensor.Tensor, beta, weight float64) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		x, y := read[T](h, w), read[T](g, w)
		for i := range x {
			x[i] = T(beta)*x[i] + T(weight)*y[i]*y[i]
		}
		return [][]T{x}
	}
}
