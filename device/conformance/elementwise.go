package conformance

import (
	"math"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// Kernels that copy, add and sum have exact answers.

func copies(s *scope) call {
	n := s.size("n") * s.size("m")
	src := s.random(s.anyStorage("src"), n)
	dst := s.empty(s.anyStorage("dst"), n)
	return exactly(func(d device.Device) { d.Copy(dst, src) }, dst, func(i int) float64 { return src.Float64(i) })
}

func adds(s *scope) call {
	n := s.size("n") * s.size("m")
	src, dst := s.random(s.storage("src"), n), s.random(s.storage("dst"), n)
	before := read[float64](dst, 0)
	return exactly(func(d device.Device) { d.Add(dst, src) }, dst, func(i int) float64 {
		if s.wide == tensor.F64 {
			return before[i] + src.Float64(i)
		}
		return float64(float32(before[i]) + float32(src.Float64(i)))
	})
}

func scales(s *scope) call {
	t := s.random(s.storage("t"), s.size("n")*s.size("m"))
	factor := rapid.SampledFrom([]float64{-1, 0.3, 1, 7}).Draw(s.T, "factor")
	before := read[float64](t, 0)
	return exactly(func(d device.Device) { d.Scale(t, factor) }, t, func(i int) float64 {
		if s.wide == tensor.F64 {
			return before[i] * factor
		}
		return float64(float32(before[i]) * float32(factor))
	})
}

func zero(s *scope) call {
	t := s.empty(s.anyStorage("t"), s.size("n"))
	return exactly(func(d device.Device) { d.Zero(t) }, t, func(int) float64 { return 0 })
}

// combine draws a result and sources, mostly different tensors, sometimes the same one.
func combine(s *scope) call {
	m, n := s.size("M"), s.size("N")
	x, y := s.random(s.wide, m, n), s.random(s.storage("y"), m, n)
	dst := s.empty(s.wide, m, n)
	switch rapid.IntRange(0, 5).Draw(s.T, "dst is") {
	case 0:
		dst = x
	case 1:
		if y.DType() == s.wide {
			dst = y
		}
	}
	factor := rapid.Float64Range(-3, 3)
	c := device.Combination{X: factor.Draw(s.T, "x"), Y: factor.Draw(s.T, "y"), Diagonal: factor.Draw(s.T, "diagonal")}
	r := call{run: func(d device.Device) { d.Combine(dst, x, y, c) }, out: []*tensor.Tensor{dst}}
	r.formulas(combineOf[float64](x, y, c), combineOf[float32](x, y, c))
	return r
}

func combineOf[T tensor.Number](x, y *tensor.Tensor, c device.Combination) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		a, b := read[T](x, w), read[T](y, w)
		for i := range a {
			a[i] = T(c.X)*a[i] + T(c.Y)*b[i]
		}
		for i := range min(x.Rows(), x.Cols()) {
			a[i*x.Cols()+i] += T(c.Diagonal)
		}
		return [][]T{a}
	}
}

func maxAbs(s *scope) call {
	t, got := s.random(s.storage("t"), s.size("n"), s.size("m")*s.size("k")), s.empty(tensor.F64, 1)
	top := 0.0
	for _, v := range read[float64](t, 0) {
		top = math.Max(top, math.Abs(v))
	}
	return exactly(func(d device.Device) { got.F64()[0] = d.MaxAbs(t) }, got, func(int) float64 { return top })
}

// quantize compares Quantize with the codes of the scalar conversion.
func quantize(s *scope) call {
	src := s.random(rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.BF16, tensor.F16}).Draw(s.T, "src"),
		s.size("n")*s.size("m"))
	dst := s.empty(tensor.BF16, src.Len())
	format := rapid.SampledFrom([]tensor.DType{tensor.F8E4M3, tensor.F8E5M2}).Draw(s.T, "format")
	scale := math.Exp2(rapid.Float64Range(-12, 16).Draw(s.T, "log₂ scale"))
	return exactly(func(d device.Device) { d.Quantize(dst, src, format, scale) }, dst, func(i int) float64 {
		y := float32(scale) * float32(src.Float64(i))
		if format == tensor.F8E4M3 {
			return float64(tensor.E4M3FromFloat32(max(-448, min(448, y))).Float32())
		}
		return float64(tensor.E5M2FromFloat32(max(-57344, min(57344, y))).Float32())
	})
}

// quantizeBlocks compares QuantizeBlocks with the codes of the scalar conversion. Half of the calls are in place.
func quantizeBlocks(s *scope) call {
	rows, cols := s.size("rows"), s.size("cols")
	src := s.random(rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.BF16, tensor.F16}).Draw(s.T, "src"), rows, cols)
	dst := s.empty(tensor.BF16, rows, cols)
	if src.DType() == tensor.BF16 && rapid.Bool().Draw(s.T, "in place") {
		dst = src
	}
	sizes := []int{1, 5, 32, 128}
	high, wide := rapid.SampledFrom(sizes).Draw(s.T, "high"), rapid.SampledFrom(sizes).Draw(s.T, "wide")
	x := read[float64](src, 0)
	amax := map[[2]int]float64{}
	block := func(i int) [2]int { return [2]int{i / cols / high, i % cols / wide} }
	for i, v := range x {
		amax[block(i)] = math.Max(amax[block(i)], math.Abs(v))
	}
	return exactly(func(d device.Device) { d.QuantizeBlocks(dst, src, high, wide) }, dst, func(i int) float64 {
		top := amax[block(i)]
		if top == 0 {
			return x[i]
		}
		power := math.Exp2(max(-126, math.Ceil(math.Log2(top/448))))
		return power * float64(tensor.E4M3FromFloat32(float32(x[i]/power)).Float32())
	})
}

func roundStochastic(s *scope) call {
	src := s.random(tensor.F32, s.size("n")*s.size("m"))
	dst := s.empty(tensor.BF16, src.Len())
	rng, first := tensor.NewRNG(s.seed, tensor.PurposeRound, 3), rapid.Uint64().Draw(s.T, "first")&^2047
	return exactly(func(d device.Device) { d.RoundStochastic(dst, src, rng, first) }, dst, func(i int) float64 {
		word := rng.Block(first + uint64(i/128*16+i%16))[i%128/32] >> (i % 32 / 16 * 16)
		return float64(tensor.BF16Stochastic(src.F32()[i], word).Float32())
	})
}

// anyStorage draws a float format regardless of the mode, since copies convert between formats.
func (s *scope) anyStorage(name string) tensor.DType {
	return rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64}).Draw(s.T, name)
}

// exactly returns a call whose results must equal want(i), rounded to dst.
func exactly(run func(device.Device), dst *tensor.Tensor, want func(i int) float64) call {
	f := func(uint64) [][]float64 {
		r := tensor.View(dst.DType(), make([]byte, dst.Bytes()), dst.Shape()...)
		for i := range dst.Len() {
			r.SetFloat64(i, want(i))
		}
		return [][]float64{read[float64](&r, 0)}
	}
	return call{run: run, out: []*tensor.Tensor{dst}, exact: f, naive: f, exactly: true}
}

// sums compares Sum and SquareSums with sums in float64. They must be close, in whatever order the device adds.
func sums(s *scope) call {
	t := s.random(s.storage("t"), s.size("n"), s.size("m"))
	more := s.random(s.storage("more"), s.size("n"), s.size("m"))
	got := s.empty(tensor.F64, 3)
	f := func(uint64) [][]float64 {
		var sum, squares, all float64
		for _, v := range read[float64](t, 0) {
			sum += v
			squares += v * v
		}
		for _, v := range read[float64](more, 0) {
			all += v * v
		}
		return [][]float64{{sum, squares, squares + all}}
	}
	return call{
		run: func(d device.Device) {
			var squares device.Squares
			got.F64()[0], got.F64()[1], got.F64()[2] = d.Sum(t), squares.Sum(d, t), squares.Sum(d, t, more)
		},
		out: []*tensor.Tensor{got}, exact: f, naive: f,
	}
}
