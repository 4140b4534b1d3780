package conformance

import (
	"math"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// rowsToNormalise returns a weight, in which one row may be zero, and gains. All other rows have a norm of at least ½,
// since a factor of gain/‖v‖ overflows for denormals.
func (s *scope) rowsToNormalise() (v, gain *tensor.Tensor) {
	n, cols := s.size("O"), s.size("I")
	v, gain = s.random(s.storage("v"), n, cols), s.random(s.wide, n)
	for i := range n {
		v.SetFloat64(i*cols, 0.5+math.Abs(v.Float64(i*cols)))
	}
	if zero := rapid.IntRange(0, 3*n).Draw(s.T, "zero row"); zero < n {
		for i := range cols {
			v.SetFloat64(zero*cols+i, 0)
		}
	}
	return v, gain
}

func weightNorm(s *scope) call {
	v, gain := s.rowsToNormalise()
	c := call{run: func(d device.Device) { d.WeightNorm(v, gain) }, out: []*tensor.Tensor{v}, factor: 4}
	c.formulas(weightNormOf[float64](v, gain), weightNormOf[float32](v, gain))
	return c
}

func weightNormOf[T tensor.Number](v, gain *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		rows, gains, cols := read[T](v, w), read[T](gain, w), v.Cols()
		for i, g := range gains {
			row := rows[i*cols:][:cols]
			if n := T(math.Sqrt(float64(dot(row, row)))); n != 0 {
				for k := range row {
					row[k] *= g / n
				}
			}
		}
		return [][]T{rows}
	}
}

func weightNormGrad(s *scope) call {
	v, gain := s.rowsToNormalise()
	dv, dgain := s.random(s.storage("dv"), v.Rows(), v.Cols()), s.random(s.wide, v.Rows())
	c := call{
		run: func(d device.Device) { d.WeightNormGrad(dv, dgain, v, gain) },
		out: []*tensor.Tensor{dv, dgain}, factor: 4,
	}
	c.formulas(weightNormGradOf[float64](dv, dgain, v, gain), weightNormGradOf[float32](dv, dgain, v, gain))
	return c
}

func weightNormGradOf[T tensor.Number](dv, dgain, v, gain *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		grads, sums, rows, cols := read[T](dv, w), read[T](dgain, w), read[T](v, w), v.Cols()
		for i, g := range read[T](gain, w) {
			row, grad := rows[i*cols:][:cols], grads[i*cols:][:cols]
			n := T(math.Sqrt(float64(dot(row, row))))
			if n == 0 {
				continue
			}
			sums[i] += dot(grad, row) / n
			for k := range grad {
				grad[k] *= g / n
			}
		}
		return [][]T{grads, sums}
	}
}
