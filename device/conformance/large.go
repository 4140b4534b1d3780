package conformance

import (
	"math"
	"slices"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// This file tests shapes with more rows, wider rows and longer sums than any kernel takes at once. Random calls are
// smaller.

// near fails the test unless got equals want up to the rounding of its storage and sums, relative to the largest
// number.
func near(t *testing.T, name string, got *tensor.Tensor, want []float64) {
	t.Helper()
	share := map[tensor.DType]float64{tensor.F32: 2e-5, tensor.BF16: 1.0 / 128, tensor.F16: 1.0 / 1024,
		tensor.F64: 1e-12}[got.DType()]
	top := 0.0
	for _, w := range want {
		top = max(top, math.Abs(w))
	}
	for i, w := range want {
		if g := got.Float64(i); !(math.Abs(g-w) <= share*top) {
			t.Errorf("%s: element %d of %v is %v, want %v", name, i, got, g, w)
			return
		}
	}
}

// largeNorms: gradients of gains are sums over many rows, gradients of rows are sums over many columns.
func largeNorms(t *testing.T, d bench, act, wide tensor.DType) {
	for _, s := range [][2]int{{9001, 5}, {3, 4507}} {
		rows, cols := s[0], s[1]
		n := rows * cols
		x, gain, dy := d.of(wide, normal(n, 31), rows, cols), d.of(wide, normal(cols, 32)),
			d.of(act, normal(n, 33), rows, cols)
		xhat, rstd, y := d.of(wide, make([]float64, n), rows, cols), d.of(wide, make([]float64, rows)),
			d.of(wide, make([]float64, n), rows, cols)
		dx, dgain, dbias := d.of(wide, make([]float64, n), rows, cols), d.of(wide, make([]float64, cols)),
			d.of(wide, make([]float64, cols))
		xs, gains, dys := read[float64](x, 0), read[float64](gain, 0), read[float64](dy, 0)

		d.RMSNorm(y, xhat, rstd, x, gain, eps)
		d.RMSNormGrad(dx, dgain, dy, xhat, rstd, gain)
		d.wait(t)
		hat, scale := RMSNorm(xs, cols, eps)
		near(t, "RMSNorm", y, Scale(hat, gains))
		wantX, wantGain := RMSNormGrad(dys, hat, scale, gains)
		near(t, "dx of RMSNorm", dx, wantX)
		near(t, "dgain of RMSNorm", dgain, wantGain)

		clear(dx.Raw())
		clear(dgain.Raw())
		d.LayerNorm(y, xhat, rstd, x, gain, gain, eps)
		d.LayerNormGrad(dx, dgain, dbias, dy, xhat, rstd, gain)
		d.wait(t)
		hat, scale = LayerNorm(xs, cols, eps)
		near(t, "LayerNorm", y, addRow(Scale(hat, gains), gains))
		wantX, wantGain, wantBias := LayerNormGrad(dys, hat, scale, gains)
		near(t, "dx of LayerNorm", dx, wantX)
		near(t, "dgain of LayerNorm", dgain, wantGain)
		near(t, "dbias of LayerNorm", dbias, wantBias)

		clear(dbias.Raw())
		d.SumRows(dbias, dy)
		d.wait(t)
		near(t, "SumRows", dbias, wantBias)
	}
}

// manyTokens has many rows of one id, scattered among those of others; some ids have no rows.
func manyTokens(t *testing.T, d bench, act, wide tensor.DType) {
	const n, v, cols = 5003, 61, 19
	ids, rng := make([]int32, n), tensor.NewRNG(34, tensor.PurposeInit, 0)
	for i := range ids {
		if ids[i] = int32(rng.Uint32(uint64(i)) % v); i%3 == 0 {
			ids[i] = 17
		}
	}
	dx, dtable, where := d.of(wide, normal(n*cols, 35), n, cols), d.of(wide, normal(v*cols, 36), v, cols),
		d.place(tensor.Of(ids))
	want, rows := read[float64](dtable, 0), read[float64](dx, 0)
	for i, id := range ids {
		axpy(want[int(id)*cols:][:cols], 1, rows[i*cols:])
	}
	d.EmbeddingGrad(dtable, dx, where)
	d.wait(t)
	near(t, "EmbeddingGrad", dtable, want)
}

// wideRows: logits of a large vocabulary, and wide activations.
func wideRows(t *testing.T, d bench, act, wide tensor.DType) {
	const rows, cols = 3, 20011
	logits := d.of(act, normal(rows*cols, 37), rows, cols)
	loss, dlogits := d.of(wide, make([]float64, rows)), d.of(wide, make([]float64, rows*cols), rows, cols)
	targets := d.place(tensor.Of([]int32{cols - 1, 0, 9999}))
	wantLoss, _, want := CrossEntropy(read[float64](logits, 0), targets.I32(), device.LossOptions{})
	d.CrossEntropy(loss, dlogits, logits, targets, device.LossOptions{})
	d.wait(t)
	near(t, "CrossEntropy", loss, wantLoss)
	near(t, "gradient of CrossEntropy", dlogits, want)

	const f = 4999
	gu, dact := d.of(act, normal(rows*2*f, 38), rows, 2*f), d.of(act, normal(rows*f, 39), rows, f)
	a, dgu := d.of(wide, make([]float64, rows*f), rows, f), d.of(wide, make([]float64, rows*2*f), rows, 2*f)
	d.SwiGLU(a, gu)
	d.SwiGLUGrad(dgu, nil, dact, gu)
	d.wait(t)
	near(t, "SwiGLU", a, SwiGLU(read[float64](gu, 0), f))
	near(t, "SwiGLUGrad", dgu, SwiGLUGrad(read[float64](dact, 0), read[float64](gu, 0), f))
}

// longSums sums several tensors, each longer than a kernel sums at once.
func longSums(t *testing.T, d bench, act, _ tensor.DType) {
	x, y := d.of(act, normal(100_003, 40)), d.of(act, normal(70_001, 41))
	var sum, squares, top float64
	for i, v := range append(read[float64](x, 0), read[float64](y, 0)...) {
		if squares += v * v; i < x.Len() {
			sum += v
			top = max(top, math.Abs(v))
		}
	}
	if got := d.Sum(x); math.Abs(got-sum) > 1e-9*squares {
		t.Errorf("%v: Sum is %v, want %v", act, got, sum)
	}
	var s device.Squares
	if got := s.Sum(d, x, y); math.Abs(got-squares) > 1e-12*squares {
		t.Errorf("%v: the sum of squares is %v, want %v", act, got, squares)
	}
	stretchesStandAlone(t, d, x)
	if got := d.MaxAbs(x); got != top {
		t.Errorf("%v: MaxAbs is %v, want %v", act, got, top)
	}
}

// stretchesStandAlone checks that the sums of a part of a tensor equal those in the whole tensor, bit for bit.
func stretchesStandAlone(t *testing.T, d bench, x *tensor.Tensor) {
	whole := make([]float64, device.Stretches(x))
	d.SquareSums(whole, x)
	for from := 1; from < len(whole); from += 2 {
		part, sums := x.Slice(from*device.Stretch, x.Len()), make([]float64, len(whole)-from)
		d.SquareSums(sums, &part)
		if !slices.Equal(sums, whole[from:]) {
			t.Errorf("%v: from stretch %d on the sums of squares are %v, in the whole %v",
				x.DType(), from, sums, whole[from:])
		}
	}
}
