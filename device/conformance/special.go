package conformance

import (
	"bytes"
	"math"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// special holds checks of promises that only some kernels make about values that are not finite, or finite and
// extreme. Each check runs in every storage of activations.
var special = []struct {
	name string
	test func(t *testing.T, d bench, act, wide tensor.DType)
}{
	{"MemoryHoldsWhatIsWritten", memoryHolds},
	{"MatMulOfManyBlocks", manyBlocks},
	{"SymmetricMatMul", symmetricProducts},
	{"NormsOfManyRowsAndWideOnes", largeNorms},
	{"EmbeddingOfManyTokens", manyTokens},
	{"DispatchOfManyTokens", manyChoices},
	{"RouteOfNaN", routeOfNaN},
	{"WideRows", wideRows},
	{"LongSums", longSums},
	{"CopyRoundsLikeTheFormat", copyRounds},
	{"FoldAddsFromLeftToRight", folds},
	{"NegativeZeroIsNegative", negativeZeros},
	{"FramesIgnoreWhatNobodySees", framesIgnoreWhatNobodySees},
	{"Int8IsItsDefinition", int8Blocks},
	{"Int8IsUnbiased", int8IsUnbiased},
	{"NaNStaysInItsRow", nanStays},
	{"NaNStaysInItsBatchRow", nanStaysInAttention},
	{"SumsAreNotFiniteIfAnElementIsNot", sumsNotFinite},
	{"CrossEntropyOfExtremeLogits", extremeLogits},
	{"CrossEntropyOfDrawnLabels", drawnLabels},
	{"SoftcapOfExtremes", softcapExtremes},
	{"IgnoredRowsReadNothing", ignoredRows},
	{"SwiGLUSaturates", saturates},
	{"GELUSaturates", geluSaturates},
	{"GeGLUSaturates", geGLUSaturates},
	{"ActivationGradsGiveTheActivationAgain", activationsAgain},
	{"LayerNormFarFromZero", farFromZero},
	{"LayerNormAgainGivesTheSameBits", layerNormTwice},
	{"RMSNormOfZeros", zeroRow},
	{"RMSNormAgainGivesTheSameBits", again},
	{"RoPEInverseUndoes", inverseUndoes},
	{"AdamWWithZeroGradientDecays", decays},
	{"CautiousDecayGoesBySign", cautious},
	{"AdamW8IsAdamWOnRoundedMoments", adamW8},
	{"AttentionOfLargeScores", largeScores},
	{"ProbabilitiesAreE4M3", probabilitiesAreE4M3},
	{"BlocksThatAreNotFinite", notFiniteBlocks},
}

func runSpecial(t *testing.T, d bench) {
	for _, k := range special {
		t.Run(k.name, func(t *testing.T) {
			for _, act := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
				d.memory.Release(0)
				k.test(t, d, act, tensor.F32)
			}
			d.memory.Release(0)
			k.test(t, d, tensor.F64, tensor.F64)
		})
	}
}

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

// of returns a tensor of values in a storage, on the Go heap.
func of(dt tensor.DType, values []float64, shape ...int) *tensor.Tensor {
	if len(shape) == 0 {
		shape = []int{len(values)}
	}
	t := tensor.View(dt, make([]byte, len(values)*dt.Size()), shape...)
	for i, v := range values {
		t.SetFloat64(i, v)
	}
	return &t
}

// normal returns n normal numbers.
func normal(n int, seed uint64) []float64 {
	rng := tensor.NewRNG(seed, tensor.PurposeInit, 1)
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.Normals(uint64(i))[0]
	}
	return x
}

// manyBlocks is a product larger than any kernel's blocks in all directions, checked at random elements.
func manyBlocks(t *testing.T, d bench, act, _ tensor.DType) {
	const m, n, k = 101, 531, 781
	a, b := normal(m*k, 1), normal(n*k, 2)
	for _, form := range []device.Form{device.NN, device.NT, device.TN} {
		x, y, dst := d.of(act, a, m, k), d.of(act, b, k, n), d.of(act, make([]float64, m*n), m, n)
		switch form {
		case device.NT:
			y = d.of(act, b, n, k)
		case device.TN:
			x = d.of(act, a, k, m)
		}
		d.MatMul(dst, x, y, form, device.MatMulOptions{Operand: act})
		d.wait(t)
		xs, ys := read[float64](x, 0), read[float64](y, 0)
		rng := tensor.NewRNG(3, tensor.PurposeInit, 0)
		for i := range uint64(300) {
			at := int(rng.Uint32(i) % (m * n))
			var want float64
			for l := range k {
				p, q := at/n*k+l, l*n+at%n
				switch form {
				case device.NT:
					q = at%n*k + l
				case device.TN:
					p = l*m + at/n
				}
				want += xs[p] * ys[q]
			}
			// Sums of 781 products of normal numbers are about 28, with float32 errors of about 1e-5.
			tolerance := map[tensor.DType]float64{tensor.F32: 1e-4, tensor.BF16: 1e-4 + math.Abs(want)/256,
				tensor.F16: 1e-4 + math.Abs(want)/2048, tensor.F64: 1e-12}[act]
			if got := dst.Float64(at); !(math.Abs(got-want) <= tolerance) {
				t.Fatalf("%v, %v: element [%d, %d] is %v, want %v", form, act, at/n, at%n, got, want)
			}
		}
	}
}

// copyRounds compares every rounding case of float32 to a narrow format with the scalar conversion, bit for bit, except
// the payload of NaN.
func copyRounds(t *testing.T, d bench, act, _ tensor.DType) {
	var bits []uint32
	for exponent := range uint32(256) {
		for _, low := range []uint32{
			0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x17fff, 0x18000, 0x7f7fff, 0x7f8000, 0x7fffff, // of BF16
			0xfff, 0x1000, 0x1001, 0x1fff, 0x2fff, 0x3000, 0x7fefff, 0x7ff000, // of F16
		} {
			bits = append(bits, exponent<<23|low, 1<<31|exponent<<23|low)
		}
	}
	src := make([]float32, len(bits))
	for i, b := range bits {
		src[i] = math.Float32frombits(b)
	}
	dst := d.of(act, make([]float64, len(bits)))
	d.Copy(dst, d.place(tensor.Of(src)))
	d.wait(t)
	for i, x := range src {
		want := float64(x)
		switch act {
		case tensor.BF16:
			want = float64(tensor.BF16FromFloat32(x).Float32())
		case tensor.F16:
			want = float64(tensor.F16FromFloat32(x).Float32())
		}
		got := dst.Float64(i)
		if math.Float64bits(got) != math.Float64bits(want) && !(got != got && want != want) {
			t.Fatalf("%v: %#08x is copied to %v, want %v", act, bits[i], got, want)
		}
	}
}

// nanStays puts NaN into one row of the kernels that work row by row: it spoils that row only.
func nanStays(t *testing.T, d bench, act, wide tensor.DType) {
	const rows, cols, bad = 5, 37, 3
	gain := d.of(wide, normal(cols, 1))
	weight := d.of(act, normal(cols*cols, 2), cols, cols)
	operand := act
	for _, k := range []struct {
		name string
		run  func(x, y *tensor.Tensor)
		in   tensor.DType
		n    int // columns of x per column of y
	}{
		{"MatMul", func(x, y *tensor.Tensor) {
			d.MatMul(y, x, weight, device.NT, device.MatMulOptions{Operand: operand})
		}, act, 1},
		{"RMSNorm", func(x, y *tensor.Tensor) {
			d.RMSNorm(y, d.of(act, make([]float64, rows*cols), rows, cols),
				d.of(wide, make([]float64, rows)), x, gain, eps)
		}, wide, 1},
		{"LayerNorm", func(x, y *tensor.Tensor) {
			d.LayerNorm(y, d.of(act, make([]float64, rows*cols), rows, cols), d.of(wide, make([]float64, rows)), x,
				gain, gain, eps)
		}, wide, 1},
		{"CrossEntropy", func(x, y *tensor.Tensor) {
			d.CrossEntropy(d.of(wide, make([]float64, rows)), y, x, d.place(tensor.Of([]int32{1, 2, 3, 4, 5})),
				device.LossOptions{})
		}, act, 1},
		{"SwiGLU", func(x, y *tensor.Tensor) { d.SwiGLU(y, x) }, act, 2},
		{"ReLUSquared", func(x, y *tensor.Tensor) { d.ReLUSquared(y, x) }, act, 1},
	} {
		values := normal(rows*cols*k.n, 3)
		clean, dirty := d.of(act, make([]float64, rows*cols), rows, cols),
			d.of(act, make([]float64, rows*cols), rows, cols)
		k.run(d.of(k.in, values, rows, cols*k.n), clean)
		const at = 11
		values[bad*cols*k.n+at] = nan
		k.run(d.of(k.in, values, rows, cols*k.n), dirty)
		d.wait(t)
		for i := range rows * cols {
			lost := i/cols == bad && (k.name != "SwiGLU" && k.name != "ReLUSquared" || i%cols == at)
			if got := dirty.Float64(i); lost && !math.IsNaN(got) || !lost && got != clean.Float64(i) {
				t.Errorf("%s, %v: element [%d, %d] is %v, without NaN in row %d it is %v",
					k.name, act, i/cols, i%cols, got, bad, clean.Float64(i))
				break
			}
		}
	}
}

// nanStaysInAttention checks that a NaN does not pass to other rows of the batch or to other key-value heads.
func nanStaysInAttention(t *testing.T, d bench, act, wide tensor.DType) {
	heads, mask := device.Heads{Q: 2, KV: 2, Size: 16}, device.Mask{Len: 9}
	const rows, bad = 3, 1
	n := rows * mask.Len
	values := normal(n*heads.Cols(), 4)
	run := func() (out, dqkv *tensor.Tensor) {
		qkv, lse := d.of(act, values, n, heads.Cols()), d.of(wide, make([]float64, heads.Q*n), heads.Q, n)
		out, dqkv = d.of(act, make([]float64, n*heads.Q*heads.Size), n, heads.Q*heads.Size),
			d.of(act, make([]float64, n*heads.Cols()), n, heads.Cols())
		d.Attention(out, lse, qkv, heads, mask)
		d.AttentionGrad(dqkv, d.of(act, normal(out.Len(), 5), n, heads.Q*heads.Size), out, lse, qkv, heads, mask)
		d.wait(t)
		return out, dqkv
	}
	clean, dclean := run()
	values[(bad*mask.Len+2)*heads.Cols()+heads.Q*heads.Size] = nan // a key of head 0
	dirty, ddirty := run()
	same := func(name string, got, want *tensor.Tensor, head int) {
		for i := range got.Len() {
			if row, h := i/got.Cols()/mask.Len, i%got.Cols()/heads.Size%heads.KV; (row != bad || h == head) &&
				got.Float64(i) != want.Float64(i) {
				t.Fatalf("%s, %v: element %d (row %d) is %v, without NaN in row %d it is %v",
					name, act, i, row, got.Float64(i), bad, want.Float64(i))
			}
		}
	}
	same("out", dirty, clean, 1)
	same("dqkv", ddirty, dclean, 1)
	if last := ((bad+1)*mask.Len - 1) * heads.Q * heads.Size; !math.IsNaN(dirty.Float64(last)) {
		t.Errorf("%v: the last query of row %d does not notice a key that is NaN", act, bad)
	}
}

func sumsNotFinite(t *testing.T, d bench, act, _ tensor.DType) {
	for _, n := range []int{1, 15, 16, 17, 63, 1000, 5000} {
		for at := 0; at < n; at += 1 + n/7 {
			for _, v := range []float64{nan, inf, -inf} {
				d.memory.Release(0)
				x := normal(n, 5)
				x[at] = v
				if s := new(device.Squares).Sum(d, d.of(act, x)); !math.IsNaN(s) && !math.IsInf(s, 0) {
					t.Fatalf("%v: the sum of squares of %d elements with %v at %d is %v", act, n, v, at, s)
				}
				if s := d.Sum(d.of(act, x)); s != v && !(math.IsNaN(s) && math.IsNaN(v)) {
					t.Fatalf("%v: Sum of %d elements with %v at %d is %v", act, n, v, at, s)
				}
			}
		}
	}
}

// symmetricProducts checks that the promise that a product is symmetric changes no bit of it.
func symmetricProducts(t *testing.T, d bench, act, wide tensor.DType) {
	for _, m := range []int{1, 45, 200} {
		for form, a := range map[device.Form]*tensor.Tensor{
			device.NT: d.of(act, normal(m*70, 8), m, 70),
			device.TN: d.of(act, normal(m*70, 8), 70, m),
		} {
			full, half := d.of(wide, make([]float64, m*m), m, m), d.of(wide, make([]float64, m*m), m, m)
			opt := device.MatMulOptions{Operand: act}
			d.MatMul(full, a, a, form, opt)
			opt.Symmetric = true
			d.MatMul(half, a, a, form, opt)
			d.wait(t)
			if !bytes.Equal(half.Raw(), full.Raw()) {
				t.Errorf("%v %v %d×%d×70: promised to be symmetric, the product has other bits", act, form, m, m)
			}
		}
	}
}

func saturates(t *testing.T, d bench, act, _ tensor.DType) {
	gates := []float64{-3e38, -1e4, -200, -90, 0, 90, 200, 1e4, 1e38}
	if act == tensor.F16 {
		gates[0], gates[8] = -6e4, 6e4
	}
	n := len(gates)
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	gu := d.of(act, append(append([]float64(nil), gates...), ones...), 1, 2*n)
	y, dgu := d.of(act, make([]float64, n), 1, n), d.of(act, make([]float64, 2*n), 1, 2*n)
	d.SwiGLU(y, gu)
	d.SwiGLUGrad(dgu, nil, d.of(act, ones, 1, n), gu)
	d.wait(t)
	for i := range gates {
		g := gu.Float64(i)
		want := map[bool]float64{true: g, false: 0}[g > 0]
		slope := map[bool]float64{true: 1, false: 0}[g > 0]
		if g == 0 {
			slope = .5
		}
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"silu", y.Float64(i), want}, {"its slope", dgu.Float64(i), slope},
			{"the gradient of up", dgu.Float64(n + i), want},
		} {
			if !(math.Abs(c.got-c.want) <= 1e-6*math.Abs(c.want)+1e-30) {
				t.Errorf("%v: %s at %v is %v, want %v", act, c.name, g, c.got, c.want)
			}
		}
	}
}

func zeroRow(t *testing.T, d bench, act, wide tensor.DType) {
	const cols = 19
	y, xhat, rstd := d.of(act, normal(2*cols, 0), 2, cols), d.of(act, normal(2*cols, 0), 2, cols),
		d.of(wide, []float64{0, 0})
	x := make([]float64, 2*cols)
	for i := range cols {
		x[cols+i] = 1e-30 // squares vanish beside eps, and in float32 altogether
	}
	d.RMSNorm(y, xhat, rstd, d.of(wide, x, 2, cols), d.of(wide, normal(cols, 7)), eps)
	d.wait(t)
	want := 1 / math.Sqrt(eps)
	unit := map[tensor.DType]float64{tensor.F16: 0x1p-25}[act] // half of the smallest number
	for r := range 2 {
		if got := rstd.Float64(r); math.Abs(got-want) > 1e-6*want {
			t.Errorf("%v: rstd of row %d is %v, want %v", act, r, got, want)
		}
	}
	for i := range 2 * cols {
		if got := xhat.Float64(i); math.Abs(got-x[i]*want) > 1e-2*x[i]*want+unit {
			t.Errorf("%v: xhat[%d] is %v, want %v", act, i, got, x[i]*want)
		}
	}
}

func again(t *testing.T, d bench, act, wide tensor.DType) {
	const rows, cols = 7, 83
	zeros := make([]float64, rows*cols)
	gain := d.of(wide, normal(cols, 8))
	y, xhat, more := d.of(act, zeros, rows, cols), d.of(act, zeros, rows, cols), d.of(act, zeros, rows, cols)
	d.RMSNorm(y, xhat, d.of(wide, zeros[:rows]), d.of(wide, normal(rows*cols, 9), rows, cols), gain, eps)
	d.RMSNormAgain(more, xhat, gain)
	d.wait(t)
	if string(more.Raw()) != string(y.Raw()) {
		t.Errorf("%v: RMSNormAgain gives other bits than RMSNorm", act)
	}
}

func inverseUndoes(t *testing.T, d bench, act, wide tensor.DType) {
	heads := device.Heads{Q: 3, KV: 1, Size: 26}
	const n = 8
	cos, sin := make([]float64, n*13), make([]float64, n*13)
	for i := range cos {
		sin[i], cos[i] = math.Sincos(float64(i))
	}
	x := d.of(act, normal(n*heads.Cols(), 10), n, heads.Cols())
	want := read[float64](x, 0)
	pos := d.place(tensor.Of([]int32{7, 6, 5, 4, 3, 2, 1, 0}))
	d.RoPE(x, d.of(wide, cos, n, 13), d.of(wide, sin, n, 13), pos, heads, false)
	d.RoPE(x, d.of(wide, cos, n, 13), d.of(wide, sin, n, 13), pos, heads, true)
	d.wait(t)
	tolerance := map[tensor.DType]float64{tensor.F32: 1e-6, tensor.BF16: 1.0 / 32, tensor.F16: 1.0 / 256,
		tensor.F64: 1e-14}[act]
	for i, w := range want {
		if got := x.Float64(i); math.Abs(got-w) > tolerance*4 {
			t.Fatalf("%v: element %d is %v after turning there and back, was %v", act, i, got, w)
		}
	}
}

// largeScores checks that with scores of thousands, the softmax all but selects one key and nothing overflows.
func largeScores(t *testing.T, d bench, act, wide tensor.DType) {
	heads, mask := device.Heads{Q: 1, KV: 1, Size: 4}, device.Mask{Len: 40}
	x := normal(40*12, 12)
	for i := range x {
		if i%12 < 8 {
			x[i] *= 200
		}
	}
	qkv, out, lse := d.of(act, x, 40, 12), d.of(act, make([]float64, 160), 40, 4),
		d.of(wide, make([]float64, 40), 1, 40)
	d.Attention(out, lse, qkv, heads, mask)
	d.wait(t)
	want, _ := Attention(read[float64](qkv, 0), heads, mask)
	for i, w := range want {
		if got := out.Float64(i); !(math.Abs(got-w) <= .02*math.Abs(w)+.02) {
			t.Fatalf("%v: out[%d, %d] is %v, want %v", act, i/4, i%4, got, w)
		}
	}
	dqkv := d.of(act, make([]float64, 480), 40, 12)
	d.AttentionGrad(dqkv, d.of(act, normal(160, 13), 40, 4), out, lse, qkv, heads, mask)
	d.wait(t)
	for i := range dqkv.Len() {
		if got := dqkv.Float64(i); math.IsNaN(got) || math.IsInf(got, 0) {
			t.Fatalf("%v: dqkv[%d, %d] is %v", act, i/12, i%12, got)
		}
	}
}
