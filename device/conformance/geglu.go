package conformance

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

func geGLU(s *scope) call {
	n, f := s.size("N"), s.size("F")
	gu, act := s.random(s.storage("gu"), n, 2*f), s.empty(s.storage("act"), n, f)
	c := call{run: func(d device.Device) { d.GeGLU(act, gu) }, out: []*tensor.Tensor{act}}
	c.terms = largest(gu) * largest(gu) // gelu is x + x·tanh
	c.formulas(geGLUOf[float64](gu), geGLUOf[float32](gu))
	return c
}

func geGLUOf[T tensor.Number](gu *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		act, _ := GeGLU(nil, read[T](gu, w), gu.Cols()/2)
		return [][]T{act}
	}
}

func geGLUGrad(s *scope) call {
	n, f := s.size("N"), s.size("F")
	gu, dact, dgu := s.random(s.storage("gu"), n, 2*f), s.random(s.storage("dact"), n, f),
		s.empty(s.storage("dgu"), n, 2*f)
	c := call{run: func(d device.Device) { d.GeGLUGrad(dgu, nil, dact, gu) }, out: []*tensor.Tensor{dgu}, factor: 4}
	c.terms = largest(dact) * largest(gu)
	c.formulas(geGLUGradOf[float64](dact, gu), geGLUGradOf[float32](dact, gu))
	return c
}

func geGLUGradOf[T tensor.Number](dact, gu *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		_, dgu := GeGLU(read[T](dact, w), read[T](gu, w), dact.Cols())
		return [][]T{dgu}
	}
}

// GeGLU returns gelu(gate)·up of rows of f gates and f ups, and, unless dact is nil, the gradient of Σ act·dact by gu.
func GeGLU[T tensor.Number](dact, gu []T, f int) (act, dgu []T) {
	dgu = make([]T, len(gu))
	for r := 0; r < len(gu); r += 2 * f {
		y, slope := GELU(gu[r : r+f])
		for c, up := range gu[r+f : r+2*f] {
			if act = append(act, y[c]*up); dact != nil {
				d := dact[len(act)-1]
				dgu[r+c], dgu[r+f+c] = d*up*slope[c], d*y[c]
			}
		}
	}
	return act, dgu
}

// geGLUSaturates checks that with a gate far from 0 the result is 0 or gate·up, and the slope 0 or 1.
func geGLUSaturates(t *testing.T, d bench, act, _ tensor.DType) {
	values := []float64{-3e38, -1e13, -1e4, -50, -11, 11, 50, 1e4, 1e13, 3e38, math.Inf(1)}
	if act == tensor.F16 {
		values = []float64{-6e4, -50, -11, 11, 50, 6e4, math.Inf(1)}
	}
	n := len(values)
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	gu, dact := d.of(act, append(values, ones...), 1, 2*n), d.of(act, ones, 1, n)
	y, dgu := d.of(act, make([]float64, n), 1, n), d.of(act, make([]float64, 2*n), 1, 2*n)
	d.GeGLU(y, gu)
	d.GeGLUGrad(dgu, nil, dact, gu)
	d.wait(t)
	for i := range values {
		want, slope := math.Max(0, gu.Float64(i)), 0.0
		if want > 0 {
			slope = 1
		}
		if got := y.Float64(i); got != want && !(math.Abs(got-want) <= 1e-30) {
			t.Errorf("%v: geglu(%v, 1) is %v, want %v", act, gu.Float64(i), got, want)
		}
		if got := dgu.Float64(i); !(math.Abs(got-slope) <= 1e-30) {
			t.Errorf("%v: the slope of geglu at %v is %v, want %v", act, gu.Float64(i), got, slope)
		}
	}
}
