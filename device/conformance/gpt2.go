package conformance

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// The kernels of GPT-2: LayerNorm, GELU, and the gradient of a bias.

func layerNorm(s *scope) call {
	n, cols := s.size("N"), s.size("D")
	x, gain, bias := s.random(s.wide, n, cols), s.random(s.wide, cols), s.random(s.wide, cols)
	y, xhat, rstd := s.empty(s.storage("y"), n, cols), s.empty(s.storage("xhat"), n, cols), s.empty(s.wide, n)
	c := call{
		run:    func(d device.Device) { d.LayerNorm(y, xhat, rstd, x, gain, bias, eps) },
		out:    []*tensor.Tensor{y, xhat, rstd},
		rounds: xhat.DType(),
		spread: spread(x),
	}
	c.formulas(layerNormOf[float64](xhat, x, gain, bias), layerNormOf[float32](xhat, x, gain, bias))
	return c
}

// spread returns how many deviations, eps counted in, the largest number of a row of x is away from 0.
func spread(x *tensor.Tensor) float64 {
	rows, most := read[float64](x, 0), 0.0
	_, rstd := LayerNorm(rows, x.Cols(), eps)
	for i, v := range rows {
		most = max(most, math.Abs(v)*rstd[i/x.Cols()])
	}
	return most
}

func layerNormOf[T tensor.Number](stored, x, gain, bias *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		xhat, rstd := LayerNorm(read[T](x, w), x.Cols(), eps)
		return [][]T{addRow(Scale(round(xhat, stored), read[T](gain, w)), read[T](bias, w)), xhat, rstd}
	}
}

func layerNormAgain(s *scope) call {
	n, cols := s.size("N"), s.size("D")
	xhat, gain, bias := s.random(s.storage("xhat"), n, cols), s.random(s.wide, cols), s.random(s.wide, cols)
	y := s.empty(s.storage("y"), n, cols)
	c := call{run: func(d device.Device) { d.LayerNormAgain(y, xhat, gain, bias) }, out: []*tensor.Tensor{y}}
	c.formulas(affineOf[float64](xhat, gain, bias), affineOf[float32](xhat, gain, bias))
	return c
}

func affineOf[T tensor.Number](x, gain, bias *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		return [][]T{addRow(Scale(read[T](x, w), read[T](gain, w)), read[T](bias, w))}
	}
}

func layerNormGrad(s *scope) call {
	n, cols := s.size("N"), s.size("D")
	dy, xhat := s.random(s.storage("dy"), n, cols), s.random(s.storage("xhat"), n, cols)
	rstd, gain := s.positive(s.wide, n), s.random(s.wide, cols)
	dx, dgain, dbias := s.random(s.wide, n, cols), s.random(s.wide, cols), s.random(s.wide, cols)
	c := call{
		run:    func(d device.Device) { d.LayerNormGrad(dx, dgain, dbias, dy, xhat, rstd, gain) },
		out:    []*tensor.Tensor{dx, dgain, dbias},
		factor: 4,
		terms:  normTerms(dy, xhat, rstd, gain),
	}
	c.formulas(layerNormGradOf[float64](dx, dgain, dbias, dy, xhat, rstd, gain),
		layerNormGradOf[float32](dx, dgain, dbias, dy, xhat, rstd, gain))
	return c
}

// normTerms returns the magnitude of the terms of a norm's gradient: dy minus its part along xhat, which is nearly all
// of dy in a short row.
func normTerms(dy, xhat, rstd, gain *tensor.Tensor) float64 {
	return largest(dy) * largest(gain) * largest(rstd) * (1 + largest(xhat)*largest(xhat))
}

func layerNormGradOf[T tensor.Number](dx, dgain, dbias, dy, xhat, rstd, gain *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		x, g, b := LayerNormGrad(read[T](dy, w), read[T](xhat, w), read[T](rstd, w), read[T](gain, w))
		axpy(x, 1, read[T](dx, w))
		axpy(g, 1, read[T](dgain, w))
		axpy(b, 1, read[T](dbias, w))
		return [][]T{x, g, b}
	}
}

func gelu(s *scope) call {
	n, f := s.size("N"), s.size("F")
	x, act := s.random(s.storage("x"), n, f), s.empty(s.storage("act"), n, f)
	// x + x·tanh
	c := call{run: func(d device.Device) { d.GELU(act, x) }, out: []*tensor.Tensor{act}, terms: largest(x)}
	c.formulas(geluOf[float64](x), geluOf[float32](x))
	return c
}

func geluOf[T tensor.Number](x *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		y, _ := GELU(read[T](x, w))
		return [][]T{y}
	}
}

func geluGrad(s *scope) call {
	n, f := s.size("N"), s.size("F")
	x, dact, dx := s.random(s.storage("x"), n, f), s.random(s.storage("dact"), n, f), s.empty(s.storage("dx"), n, f)
	c := call{
		run: func(d device.Device) { d.GELUGrad(dx, nil, dact, x) }, out: []*tensor.Tensor{dx}, factor: 4,
		terms: largest(dact),
	}
	c.formulas(geluGradOf[float64](dact, x), geluGradOf[float32](dact, x))
	return c
}

func geluGradOf[T tensor.Number](dact, x *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		_, slope := GELU(read[T](x, w))
		return [][]T{Scale(read[T](dact, w), slope)}
	}
}

func sumRows(s *scope) call {
	n, cols := s.size("N"), s.size("D")
	x, dst := s.random(s.storage("x"), n, cols), s.random(s.wide, cols)
	c := call{run: func(d device.Device) { d.SumRows(dst, x) }, out: []*tensor.Tensor{dst}}
	c.formulas(sumRowsOf[float64](dst, x), sumRowsOf[float32](dst, x))
	return c
}

func sumRowsOf[T tensor.Number](dst, x *tensor.Tensor) func(w uint64) [][]T {
	return func(w uint64) [][]T {
		sum, rows := make([]T, x.Cols()), read[T](x, w)
		for r := range x.Rows() {
			axpy(sum, 1, rows[r*x.Cols():][:x.Cols()])
		}
		axpy(sum, 1, read[T](dst, w))
		return [][]T{sum}
	}
}

// addRow returns rows of x plus row.
func addRow[T tensor.Number](x, row []T) []T {
	y := make([]T, len(x))
	for i := range x {
		y[i] = x[i] + row[i%len(row)]
	}
	return y
}

// LayerNorm returns xhat and rstd of rows of x as long as cols.
func LayerNorm[T tensor.Number](x []T, cols int, eps float64) (xhat, rstd []T) {
	for r := 0; r < len(x); r += cols {
		var mean, variance T
		for _, v := range x[r : r+cols] {
			mean += v / T(cols)
		}
		for _, v := range x[r : r+cols] {
			variance += (v - mean) * (v - mean) / T(cols)
		}
		s := T(1 / math.Sqrt(float64(variance)+eps))
		rstd = append(rstd, s)
		for _, v := range x[r : r+cols] {
			xhat = append(xhat, (v-mean)*s)
		}
	}
	return xhat, rstd
}

// LayerNormGrad returns the additions of LayerNorm with a gain and a bias to the gradients of x, gain and bias.
func LayerNormGrad[T tensor.Number](dy, xhat, rstd, gain []T) (dx, dgain, dbias []T) {
	cols := len(gain)
	dx, dgain, dbias = make([]T, len(dy)), make([]T, cols), make([]T, cols)
	ones := make([]T, cols)
	for c := range ones {
		ones[c] = 1
	}
	for r, s := range rstd {
		g, h := Scale(dy[r*cols:(r+1)*cols], gain), xhat[r*cols:(r+1)*cols]
		mean, along := dot(g, ones)/T(cols), dot(g, h)/T(cols)
		for c := range cols {
			dx[r*cols+c] = s * (g[c] - mean - h[c]*along)
			dgain[c] += dy[r*cols+c] * h[c]
			dbias[c] += dy[r*cols+c]
		}
	}
	return dx, dgain, dbias
}

// GELU returns the activation of x and its slope.
func GELU[T tensor.Number](x []T) (y, slope []T) {
	c := T(math.Sqrt(2 / math.Pi))
	for _, v := range x {
		th := T(math.Tanh(float64(c * (v + 0.044715*v*v*v))))
		y = append(y, v*(1+th)/2)
		slope = append(slope, (1+th)/2+v*(1-th*th)/2*c*(1+3*0.044715*v*v))
	}
	return y, slope
}

// geluSaturates checks that far from 0 GELU is 0 or the identity, with a slope of 0 or 1.
func geluSaturates(t *testing.T, d bench, act, wide tensor.DType) {
	values := []float64{-3e38, -1e13, -1e4, -50, -11, 0, 11, 50, 1e4, 1e13, 3e38}
	if act == tensor.F16 {
		values[0], values[1], values[9], values[10] = -6e4, -2e4, 2e4, 6e4
	}
	n := len(values)
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	x, y, dx := d.of(act, values, 1, n), d.of(act, make([]float64, n), 1, n), d.of(act, make([]float64, n), 1, n)
	d.GELU(y, x)
	d.GELUGrad(dx, nil, d.of(act, ones, 1, n), x)
	d.wait(t)
	for i := range values {
		want, slope := math.Max(0, x.Float64(i)), 0.5
		if values[i] != 0 {
			slope = map[bool]float64{true: 1, false: 0}[want > 0]
		}
		if got := y.Float64(i); !(math.Abs(got-want) <= 1e-30) {
			t.Errorf("%v: gelu(%v) is %v, want %v", act, x.Float64(i), got, want)
		}
		if got := dx.Float64(i); !(math.Abs(got-slope) <= 1e-30) {
			t.Errorf("%v: the slope of gelu at %v is %v, want %v", act, x.Float64(i), got, slope)
		}
	}
}

// farFromZero checks that rows thousands of deviations away from 0 are normalised correctly, and that a row without
// variance becomes 0.
func farFromZero(t *testing.T, d bench, act, wide tensor.DType) {
	const cols, mean = 301, 4096.0
	x := make([]float64, 2*cols)
	for i := range cols {
		x[i] = mean + float64(i%3-1) // deviation √(2/3)
		x[cols+i] = mean
	}
	gain, bias := make([]float64, cols), make([]float64, cols)
	for i := range gain {
		gain[i] = 1
	}
	y, xhat, rstd := d.of(act, x, 2, cols), d.of(act, x, 2, cols), d.of(wide, []float64{0, 0})
	d.LayerNorm(y, xhat, rstd, d.of(wide, x, 2, cols), d.of(wide, gain), d.of(wide, bias), eps)
	d.wait(t)
	sum, squares := 0.0, 0.0
	for _, v := range x[:cols] {
		sum += v - mean
		squares += (v - mean) * (v - mean)
	}
	sum /= cols
	want := 1 / math.Sqrt(squares/cols-sum*sum+eps)
	tolerance := map[tensor.DType]float64{tensor.F64: 1e-8}[wide] + 1e-6
	for r, want := range []float64{want, 1 / math.Sqrt(eps)} {
		if got := rstd.Float64(r); math.Abs(got-want) > tolerance*want {
			t.Errorf("%v: rstd of row %d is %v, want %v", act, r, got, want)
		}
	}
	for i := range 2 * cols {
		w := (x[i] - mean - sum) * want
		if i >= cols {
			w = 0
		}
		if got := y.Float64(i); math.Abs(got-w) > 1e-2 {
			t.Fatalf("%v: element %d of a row around %v is %v, want %v", act, i, mean, got, w)
		}
	}
}

func layerNormTwice(t *testing.T, d bench, act, wide tensor.DType) {
	const rows, cols = 7, 83
	zeros := make([]float64, rows*cols)
	gain, bias := d.of(wide, normal(cols, 8)), d.of(wide, normal(cols, 10))
	y, xhat, more := d.of(act, zeros, rows, cols), d.of(act, zeros, rows, cols), d.of(act, zeros, rows, cols)
	d.LayerNorm(y, xhat, d.of(wide, zeros[:rows]), d.of(wide, normal(rows*cols, 9), rows, cols), gain, bias, eps)
	d.LayerNormAgain(more, xhat, gain, bias)
	d.wait(t)
	if string(more.Raw()) != string(y.Raw()) {
		t.Errorf("%v: LayerNormAgain gives other bits than LayerNorm", act)
	}
}
