package cpu

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// steps runs AdamW from zero moments with the gradients of each step.
func steps(d *Device, p *tensor.Tensor, o device.AdamW, grads ...[]float64) {
	m, v, g := empty(p.DType(), p.Len()), empty(p.DType(), p.Len()), empty(p.DType(), p.Len())
	for t, grad := range grads {
		for i, x := range grad {
			g.SetFloat64(i, x)
		}
		o.Correct1 = 1 / (1 - math.Pow(o.Beta1, float64(t+1)))
		o.Correct2 = 1 / (1 - math.Pow(o.Beta2, float64(t+1)))
		d.AdamW(p, g, m, v, o)
	}
}

var (
	start = []float64{.5, -1, 2, -.25, 1.5, -3}
	grads = [][]float64{{.1, -.2, .3, .4, -.5, .6}, {-.3, .1, .2, -.6, .05, 0}, {.02, .4, -.1, .3, .7, -.9}}
)

// Three steps, computed in float64 from the formula; the coupled L2 form differs from the third digit on.
func TestAdamWGolden(t *testing.T) {
	for _, c := range []struct {
		o    device.AdamW
		want []float64
	}{
		{device.AdamW{LR: .01, Beta1: .9, Beta2: .95, Eps: 1e-8, Scale: 1},
			[]float64{.498311492537, -.991824533526, 1.974649409806, -.258224411171, 1.513500230820, -3.014364527704}},
		{device.AdamW{LR: .01, Beta1: .9, Beta2: .95, Eps: 1e-8, Scale: 1, Decay: .1},
			[]float64{.496828089077, -.988850206219, 1.968685148592, -.257457636052, 1.508978738397, -3.005346748227}},
		{device.AdamW{LR: .01, Beta1: .9, Beta2: .999, Eps: 1e-8, Scale: 1, Decay: .01},
			[]float64{.498202459033, -.991612244235, 1.974180590971, -.258133670381, 1.512952479059, -3.013352234812}},
	} {
		for _, tier := range isa.Tiers() {
			d := NewTier(tier, 1)
			defer d.Close()
			for _, dtype := range []tensor.DType{tensor.F64, tensor.F32} {
				tolerance := map[tensor.DType]float64{tensor.F64: 1e-12, tensor.F32: 1e-6}[dtype]
				p := empty(dtype, 6)
				for i, x := range start {
					p.SetFloat64(i, x)
				}
				steps(d, p, c.o, grads...)
				for i, want := range c.want {
					if got := p.Float64(i); math.Abs(got-want) > tolerance {
						t.Errorf("%v %v decay %v: element %d is %.12f, want %.12f",
							tier, dtype, c.o.Decay, i, got, want)
					}
				}
			}
		}
	}
}

func TestAdamWFirstStepIsTheRate(t *testing.T) {
	d := referenceDevice(t)
	p := tensor.Of(append([]float64(nil), start...))
	steps(d, p, device.AdamW{LR: .01, Beta1: .9, Beta2: .95, Eps: 1e-8, Scale: 1},
		[]float64{1e-3, -1e-2, 1, -1, 1e3, 1e5})
	for i, got := range p.F64() {
		if moved := math.Abs(got - start[i]); math.Abs(moved-.01) > 1e-6 {
			t.Errorf("element %d moved by %v, want 0.01", i, moved)
		}
	}
}

func TestAdamWIgnoresTheScaleOfGradients(t *testing.T) {
	d := referenceDevice(t)
	o := device.AdamW{LR: .01, Beta1: .9, Beta2: .95, Eps: 1e-12, Decay: .1, Scale: 1}
	a, b := tensor.Of(append([]float64(nil), start...)), tensor.Of(append([]float64(nil), start...))
	steps(d, a, o, grads...)
	o.Scale = 1000
	steps(d, b, o, grads...)
	for i := range a.F64() {
		if math.Abs(a.F64()[i]-b.F64()[i]) > 1e-9 {
			t.Errorf("element %d is %v, and %v with gradients 1000 times as large", i, a.F64()[i], b.F64()[i])
		}
	}
}

// With g = 0, decoupled decay shrinks weights by exactly (1 − lr·λ) a step; coupled L2 does not.
func TestAdamWDecayIsDecoupled(t *testing.T) {
	d := referenceDevice(t)
	p := tensor.Of(append([]float64(nil), start...))
	zero := make([]float64, 6)
	steps(d, p, device.AdamW{LR: .01, Beta1: .9, Beta2: .95, Eps: 1e-8, Decay: .1, Scale: 1}, zero, zero, zero, zero)
	for i, got := range p.F64() {
		if want := start[i] * math.Pow(1-.01*.1, 4); math.Abs(got-want) > 1e-14 {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
}

// x = 1 … 8 at position 3, base 10⁴.
func TestRoPEGolden(t *testing.T) {
	for _, c := range []struct {
		interleaved bool
		want        []float64
	}{
		{false, []float64{-1.695592537, .137551738, 2.7886816, 3.975982036, -4.808842475, 6.323059348, 7.086836737,
			8.011963982}},
		{true, []float64{-1.272232513, -1.838864985, 1.683928641, 4.707906576, 4.817777168, 6.147277704, 6.975968536,
			8.020963969}},
	} {
		d := referenceDevice(t)
		heads := device.Heads{Q: 1, KV: 1, Size: 8, Interleaved: c.interleaved}
		qkv := empty(tensor.F64, 1, 24)
		for i := range 24 {
			qkv.SetFloat64(i, float64(i%8+1))
		}
		cos, sin := angles(tensor.F64, 4, 8)
		pos := tensor.Of([]int32{3})
		d.RoPE(qkv, cos, sin, pos, heads, false)
		for i := range 24 {
			expect := float64(i%8 + 1) // the value head stays
			if i < 16 {
				expect = c.want[i%8]
			}
			if got := qkv.Float64(i); math.Abs(got-expect) > 1e-9 {
				t.Errorf("interleaved %v: element %d is %v, want %v", c.interleaved, i, got, expect)
			}
		}
		d.RoPE(qkv, cos, sin, pos, heads, true)
		for i := range 24 {
			if got := qkv.Float64(i); math.Abs(got-float64(i%8+1)) > 1e-12 {
				t.Errorf("interleaved %v: rotating back gives %v at %d, want %v", c.interleaved, got, i, i%8+1)
			}
		}
	}
}

// Interleaved rotation of permuted heads equals the permutation of rotated heads, bit for bit if heads are whole
// vectors of every tier.
func TestRoPELayoutsAreOneModel(t *testing.T) {
	for _, tier := range isa.Tiers() {
		d := NewTier(tier, 2)
		defer d.Close()
		for _, dt := range []tensor.DType{tensor.F32, tensor.BF16} {
			for _, size := range []int{16, 32, 64, 80} {
				const rows = 19
				heads := device.Heads{Q: 3, KV: 1, Size: size}
				half := gaussian(uint32(size), dt, rows, heads.Cols())
				pairs := empty(dt, rows, heads.Cols())
				place := func(i int) int { // the place of element i of the half layout in the interleaved layout
					at, e := i/size*size, i%size
					return at + 2*(e%(size/2)) + e/(size/2)
				}
				for i := range half.Len() {
					pairs.SetFloat64(place(i), half.Float64(i))
				}
				cos, sin := angles(tensor.F32, 40, size)
				pos := ints(10, rows, 40)
				d.RoPE(half, cos, sin, pos, heads, false)
				heads.Interleaved = true
				d.RoPE(pairs, cos, sin, pos, heads, false)
				for i := range half.Len() {
					if i%heads.Cols() >= 4*size {
						continue // values do not depend on the layout
					}
					if got, want := pairs.Float64(place(i)), half.Float64(i); got != want {
						t.Fatalf("%v, %v, heads of %d: element %d is %v interleaved, %v in halves",
							tier, dt, size, i, got, want)
					}
				}
			}
		}
	}
}

// q·k after rotation depends on the distance of the positions alone.
func TestRoPEIsRelative(t *testing.T) {
	d := referenceDevice(t)
	heads := device.Heads{Q: 1, KV: 1, Size: 16}
	cos, sin := angles(tensor.F64, 64, 16)
	var first float64
	for i, p := range []int32{0, 1, 17, 40} {
		qkv := gaussian(1, tensor.F64, 1, 48)
		both := empty(tensor.F64, 2, 48)
		copy(both.F64(), qkv.F64())
		copy(both.F64()[48:], qkv.F64())
		d.RoPE(both, cos, sin, tensor.Of([]int32{p + 9, p}), heads, false)
		s := 0.0
		for e := range 16 {
			s += both.F64()[e] * both.F64()[48+16+e]
		}
		if i == 0 {
			first = s
		} else if math.Abs(s-first) > 1e-12 {
			t.Errorf("q·k at positions %d and %d is %v, want %v", p+9, p, s, first)
		}
	}
}

func TestCrossEntropyOfExtremeRows(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	for _, tier := range isa.Tiers() {
		d := NewTier(tier, 1)
		defer d.Close()
		const cols = 19
		row := func(fill float32, at int, value float32) []float32 {
			x := make([]float32, cols)
			for i := range x {
				x[i] = fill
			}
			x[at] = value
			return x
		}
		for _, c := range []struct {
			name string
			row  []float32
			want float64
		}{
			{"equal logits", row(5, 3, 5), math.Log(cols)},
			{"huge equal logits", row(1e30, 3, 1e30), math.Log(cols)},
			{"a certain right answer", row(-1e30, 3, 0), 0},
			{"one possible answer", row(-inf, 3, 2), 0},
			{"an impossible answer", row(0, 3, -inf), math.Inf(1)},
			{"no possible answer", row(-inf, 3, -inf), math.NaN()},
			{"an infinite logit", row(0, 3, inf), math.NaN()},
			{"a NaN", row(0, 7, nan), math.NaN()},
		} {
			loss := empty(tensor.F32, 1)
			d.CrossEntropy(loss, nil, tensor.Of(c.row, 1, cols), tensor.Of([]int32{3}), device.LossOptions{})
			if got := loss.Float64(0); math.IsNaN(c.want) != math.IsNaN(got) ||
				got != c.want && math.Abs(got-c.want) > 1e-6 {
				t.Errorf("%v: %s: loss %v, want %v", tier, c.name, got, c.want)
			}
		}
	}
}

func TestCrossEntropyIgnoresAShiftOfLogits(t *testing.T) {
	d := referenceDevice(t)
	a, targets := gaussian(1, tensor.F64, 3, 11), tensor.Of([]int32{1, 10, 5})
	b := empty(tensor.F64, 3, 11)
	for i, x := range a.F64() {
		b.F64()[i] = x + 1000
	}
	la, lb := empty(tensor.F64, 3), empty(tensor.F64, 3)
	d.CrossEntropy(la, a, a, targets, device.LossOptions{})
	d.CrossEntropy(lb, b, b, targets, device.LossOptions{})
	for i := range a.F64() {
		if math.Abs(a.F64()[i]-b.F64()[i]) > 1e-12 {
			t.Errorf("gradient %d is %v, and %v with logits shifted by 1000", i, a.F64()[i], b.F64()[i])
		}
	}
	if math.Abs(d.Sum(la)-d.Sum(lb)) > 1e-11 {
		t.Errorf("loss %v, and %v with logits shifted by 1000", la.F64(), lb.F64())
	}
}

func TestNormsOfNonFiniteTensorsAreNotFinite(t *testing.T) {
	for _, tier := range isa.Tiers() {
		d := NewTier(tier, 2)
		defer d.Close()
		for _, dtype := range storages {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				for _, at := range []int{0, 77, chunk + 3, 2*chunk + 4} {
					x := empty(dtype, 2*chunk+5)
					x.SetFloat64(at, bad)
					if s := new(device.Squares).Sum(d, x); !math.IsNaN(s) && !math.IsInf(s, 0) {
						t.Errorf("%v %v: Σ x² = %v with %v at %d", tier, dtype, s, bad, at)
					}
				}
			}
		}
	}
}

// Float32 would lose all of the small addends.
func TestSumsAreAddedInFloat64(t *testing.T) {
	for _, tier := range isa.Tiers() {
		d := NewTier(tier, 1)
		defer d.Close()
		x := empty(tensor.F32, 100001)
		for i := range x.F32() {
			x.F32()[i] = 0x1p-15
		}
		x.F32()[0] = 1 << 10
		if got, want := d.Sum(x), 1<<10+100000*0x1p-15; got != want {
			t.Errorf("%v: Σ x = %v, want %v", tier, got, want)
		}
		if got, want := new(device.Squares).Sum(d, x), 1<<20+100000*0x1p-30; got != want {
			t.Errorf("%v: Σ x² = %v, want %v", tier, got, want)
		}
	}
}

func TestWrongShapesAndTypesPanicByName(t *testing.T) {
	d := referenceDevice(t)
	x, g := empty(tensor.F32, 2, 3), empty(tensor.F32, 3)
	for name, run := range map[string]func(){
		"shape": func() { d.RMSNorm(x, x, empty(tensor.F32, 2), x, empty(tensor.F32, 4), 0) },
		"dtype": func() { d.RMSNorm(x, x, empty(tensor.F64, 2), x, g, 0) },
		"id":    func() { d.Embedding(x, x, tensor.Of([]int32{0, 2})) },
		"target": func() {
			d.CrossEntropy(empty(tensor.F32, 2), nil, x, tensor.Of([]int32{0, 3}), device.LossOptions{})
		},
		"position": func() {
			d.RoPE(empty(tensor.F32, 1, 6), empty(tensor.F32, 4, 1), empty(tensor.F32, 4, 1), tensor.Of([]int32{4}),
				device.Heads{Q: 1, KV: 1, Size: 2}, false)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("wrong %s: no panic", name)
				}
			}()
			run()
		}()
	}
}
