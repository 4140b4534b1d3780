package vec

import (
	"fmt"
	"math"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// lengths cover empty rows, every rest of the widest unrolled loop, and long rows.
func lengths() []int {
	var n []int
	for i := range 140 {
		n = append(n, i)
	}
	return append(n, 1000, 4097)
}

func normals(seed uint32, n int) []float32 {
	rng := tensor.NewRNG(uint64(seed), tensor.PurposeData, 0)
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.Normals(uint64(i / 4))[i%4])
	}
	return x
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = float64(x[i])
	}
	return y
}

// near fails unless |got − want| is within tol·scale for each element.
func near(t *testing.T, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tol*(1+math.Abs(want[i]))) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// Every primitive of every tier computes the float64 definition of the same inputs on every length, and writes nothing
// past its end.
func TestPrimitivesMatchFloat64(t *testing.T) {
	ref := Float64()
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		for _, n := range lengths() {
			const guard = 7
			a, b, c, d := normals(1, n+guard), normals(2, n+guard), normals(3, n+guard), normals(4, n+guard)
			e, f := make([]float32, n+guard), make([]float32, n+guard)
			for _, x := range [][]float32{a, b, c, d, e, f} {
				for i := n; i < n+guard; i++ {
					x[i] = 12345
				}
			}
			A, B, C, D := widen(a[:n]), widen(b[:n]), widen(c[:n]), widen(d[:n])
			E, F := make([]float64, n), make([]float64, n)
			check := func(name string, tol float64) {
				t.Helper()
				for i, p := range [][]float32{a, b, c, d, e, f} {
					what := fmt.Sprintf("%v %s(%d) slice %d", tier, name, n, i)
					near(t, what, p[:n], [][]float64{A, B, C, D, E, F}[i], tol)
					for k := n; k < n+guard; k++ {
						if p[k] != 12345 {
							t.Fatalf("%s wrote past its end, at %d", what, k)
						}
					}
				}
			}
			scalar := func(name string, got, want, tol float64) {
				t.Helper()
				if !(got == want || math.Abs(got-want) <= tol*(1+math.Abs(want))) {
					t.Fatalf("%v %s(%d) = %v, want %v", tier, name, n, got, want)
				}
			}
			x := func(s []float32) []float32 { return s[:n] }
			v.Mul(x(e), x(a), x(b))
			ref.Mul(E, A, B)
			check("Mul", 1e-6)
			v.MulAdd(x(e), x(c), x(d))
			ref.MulAdd(E, C, D)
			check("MulAdd", 1e-6)
			v.Add(x(e), x(a))
			ref.Add(E, A)
			check("Add", 1e-6)
			v.Axpy(x(e), x(b), 1.5)
			ref.Axpy(E, B, 1.5)
			check("Axpy", 1e-6)
			v.Scale(x(f), x(e), -0.3)
			ref.Scale(F, E, -0.3)
			check("Scale", 1e-6)
			v.Mix(x(e), x(f), x(a), 0.7, -1.3)
			ref.Mix(E, F, A, 0.7, -1.3)
			check("Mix", 1e-6)
			v.Rotate(x(a), x(b), x(c), x(d))
			ref.Rotate(A, B, C, D)
			check("Rotate", 1e-6)
			v.RotatePairs(x(a)[:n&^1], x(c), x(d))
			ref.RotatePairs(A[:n&^1], C, D)
			check("RotatePairs", 1e-6)
			v.SwiGLU(x(e), x(a), x(b))
			ref.SwiGLU(E, A, B)
			check("SwiGLU", 1e-6)
			v.SwiGLUGrad(x(e), x(f), x(e), x(a), x(b), x(c))
			ref.SwiGLUGrad(E, F, E, A, B, C)
			check("SwiGLUGrad", 2e-6)
			v.GeGLU(x(e), x(a), x(b))
			ref.GeGLU(E, A, B)
			check("GeGLU", 1e-6)
			v.GeGLUGrad(x(e), x(f), x(e), x(a), x(b), x(c))
			ref.GeGLUGrad(E, F, E, A, B, C)
			check("GeGLUGrad", 2e-6)
			v.ReLUSquaredGrad(x(e), x(f), x(c))
			ref.ReLUSquaredGrad(E, F, C)
			check("ReLUSquaredGrad", 2e-6)
			v.ReLUSquared(x(f), x(b))
			ref.ReLUSquared(F, B)
			check("ReLUSquared", 1e-6)
			scalar("Dot", float64(v.Dot(x(a), x(b))), ref.Dot(A, B), 1e-5)
			scalar("Max", float64(v.Max(x(c))), ref.Max(C), 0)
			scalar("Sum", v.Sum(x(c)), ref.Sum(C), 1e-12)
			scalar("SumSq", v.SumSq(x(c)), ref.SumSq(C), 1e-12)
			scalar("ExpSum", float64(v.ExpSum(x(e), x(c), 0.7)), ref.ExpSum(E, C, 0.7), 1e-5)
			check("ExpSum", 1e-6)
			v.Softcap(x(e), x(b), 0.8)
			ref.Softcap(E, B, 0.8)
			check("Softcap", 1e-6)
			v.ELU1(x(e), x(f), x(c))
			ref.ELU1(E, F, C)
			check("ELU1", 1e-6)
			for i := range n { // second moments are not negative
				d[i], D[i] = d[i]*d[i], float64(d[i]*d[i])
			}
			for _, floor := range []float64{0, math.Inf(-1)} { // decay by sign, decay everywhere
				v.AdamW(x(a), x(b), x(c), x(d), adamWOf[float32](floor))
				ref.AdamW(A, B, C, D, adamWOf[float64](floor))
				check("AdamW", 2e-6)
				v.Lion(x(a), x(b), x(c), lionOf[float32](floor))
				ref.Lion(A, B, C, lionOf[float64](floor))
				check("Lion", 2e-6)
				v.AdEMAMix(x(a), x(b), x(c), x(e), x(d), adEMAMixOf[float32](floor))
				ref.AdEMAMix(A, B, C, E, D, adEMAMixOf[float64](floor))
				check("AdEMAMix", 4e-6)
				v.Descend(x(a), x(c), &Descend[float32]{0.3, 0.25, float32(floor)})
				ref.Descend(A, C, &Descend[float64]{0.3, 0.25, floor})
				check("Descend", 4e-6)
			}
			v.Adam(x(a), x(b), x(c), x(d), adamWOf[float32](0))
			ref.Adam(A, B, C, D, adamWOf[float64](0))
			check("Adam", 4e-6)
			v.Whiten(x(e), x(b), x(d), &Whiten[float32]{0.5, 0.9, 0.1, 1e-3})
			ref.Whiten(E, B, D, &Whiten[float64]{0.5, 0.9, 0.1, 1e-3})
			check("Whiten", 4e-6)
			v.Momentum(x(a), x(b), x(c), &Momentum[float32]{0.5, 0.1, 0.9, 0.8, 0.01, 0.02})
			ref.Momentum(A, B, C, &Momentum[float64]{0.5, 0.1, 0.9, 0.8, 0.01, 0.02})
			check("Momentum", 4e-6)
			for _, floor := range []float64{math.Inf(-1), 0} {
				scalar("Sophia", float64(v.Sophia(x(a), x(b), x(c), x(d), &Sophia[float32]{
					0.9, 0.1, 0.5, 1e-15, 1e-2, 1e-4, float32(floor), 1, -1,
				})),
					ref.Sophia(A, B, C, D, &Sophia[float64]{0.9, 0.1, 0.5, 1e-15, 1e-2, 1e-4, floor, 1, -1}), 0)
				check("Sophia", 2e-6)
			}
			v.MeanSquare(x(d), x(b), 0.9, 0.1)
			ref.MeanSquare(D, B, 0.9, 0.1)
			check("MeanSquare", 2e-6)
		}
	}
}

// The error is within the bound that exp.go states, in units of the last place of the exact result (2⁻¹⁴⁹ if that is
// subnormal).
func TestExpErrorIsWithinItsBound(t *testing.T) {
	const stride = 997 // of the bit patterns of [−104, 89], both signs
	var xs []float32
	for bits := uint32(0); bits < math.Float32bits(104); bits += stride {
		xs = append(xs, math.Float32frombits(bits), -math.Float32frombits(bits))
	}
	for x := float32(-103.98); x < -87; x += 0.0007 { // subnormal results
		xs = append(xs, x)
	}
	for _, tier := range isa.Tiers() {
		v, worst, at := Float32(tier), 0.0, float32(0)
		dst := make([]float32, len(xs))
		v.ExpSum(dst, xs, 0)
		for i, x := range xs {
			want := math.Exp(float64(x))
			if float32(want) == float32(math.Inf(1)) {
				if want > math.MaxFloat32*(1+1e-7) && !math.IsInf(float64(dst[i]), 1) {
					t.Fatalf("%v: exp(%v) = %v, want +Inf", tier, x, dst[i])
				}
				continue
			}
			ulp := math.Ldexp(1, max(math.Ilogb(want)-23, -149))
			if err := math.Abs(float64(dst[i])-want) / ulp; err > worst {
				worst, at = err, x
			}
		}
		t.Logf("%v: at most %.3f ulp, at %v, of %d arguments", tier, worst, at, len(xs))
		bound := 1.0
		if tier == isa.Generic {
			bound = 1.2
		}
		if worst >= bound {
			t.Errorf("%v: exp(%v) is off by %.3f ulp", tier, at, worst)
		}
	}
}

func TestExpLimits(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		for _, c := range []struct{ x, want float32 }{
			{-inf, 0}, {inf, inf}, {nan, nan}, {0, 1}, {-1e30, 0}, {1e30, inf}, {89, inf}, {88.8, inf}, {-104, 0},
			{float32(math.Copysign(0, -1)), 1},
			{-103.97208, math.SmallestNonzeroFloat32}, {-103.97209, 0},
			{88.72283, float32(math.Exp(float64(float32(88.72283))))},
		} {
			for _, n := range []int{1, 8, 16, 37} {
				x, y := make([]float32, n), make([]float32, n)
				x[n-1] = c.x
				v.ExpSum(y, x, 0)
				if got := y[n-1]; math.Abs(float64(got)-float64(c.want)) > 1.2e-7*float64(c.want) && got != c.want ||
					(got != got) != (c.want != c.want) {
					t.Errorf("%v: exp(%v) = %v, want %v", tier, c.x, got, c.want)
				}
			}
		}
	}
}

// Softmax of a row that holds no finite maximum must not look like a number.
func TestSumOfExpShowsNaN(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		for _, bad := range []float32{-inf, inf, nan} {
			x := make([]float32, 37)
			for i := range x {
				x[i] = bad
			}
			dst := make([]float32, len(x))
			if s := v.ExpSum(dst, x, v.Max(x)); s == s {
				t.Errorf("%v: a row of %v sums to %v, want NaN", tier, bad, s)
			}
			x = normals(1, 37)
			x[20] = nan
			if s := v.ExpSum(dst, x, v.Max(x)); s == s {
				t.Errorf("%v: a row with one NaN sums to %v, want NaN", tier, s)
			}
		}
	}
}

func adamWOf[T Float](floor float64) *AdamW[T] {
	return &AdamW[T]{0.5, 0.9, 0.1, 0.95, 0.05, 0.1, 1e-2, 2, 1e-8, T(floor)}
}

func lionOf[T Float](floor float64) *Lion[T] {
	return &Lion[T]{0.5, 0.9, 0.1, 0.95, 0.05, 0.1, 1e-2, T(floor)}
}

func adEMAMixOf[T Float](floor float64) *AdEMAMix[T] {
	return &AdEMAMix[T]{0.5, 0.9, 0.1, 0.95, 0.05, 0.99, 0.01, 1e-2, 5e-2, 2, 1e-8, 0.1, T(floor)}
}

// A step of an optimizer switches subnormal numbers off; they must be on again afterwards.
func TestStepsLeaveSubnormalsOn(t *testing.T) {
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		x, g, m, n, s := []float32{1e-40}, []float32{0}, []float32{1e-40}, []float32{1e-40}, []float32{1e-40}
		for name, step := range map[string]func(){
			"AdamW":    func() { v.AdamW(x, g, m, s, &AdamW[float32]{Eps: 1}) },
			"Adam":     func() { v.Adam(x, g, m, s, &AdamW[float32]{Eps: 1}) },
			"Momentum": func() { v.Momentum(x, g, m, &Momentum[float32]{}) },
			"Lion":     func() { v.Lion(x, g, m, &Lion[float32]{}) },
			"AdEMAMix": func() { v.AdEMAMix(x, g, m, n, s, &AdEMAMix[float32]{Eps: 1}) },
			"Whiten":   func() { v.Whiten(x, g, s, &Whiten[float32]{Keep: 1, Eps: 1}) },
			"Sophia":   func() { v.Sophia(x, g, m, s, &Sophia[float32]{Tiny: 1, One: 1, MinusOne: -1}) },
			"Descend":  func() { v.Descend(x, g, &Descend[float32]{}) },
		} {
			step()
			y := []float32{1e-40}
			if y[0] *= 0.5; y[0] == 0 {
				t.Fatalf("%v: 1e-40 · 0.5 = 0 after %s", tier, name)
			}
		}
	}
}

// All tiers round to bfloat16 as tensor does, bit for bit: random patterns, and every upper half with the lower halves
// around a tie.
func TestPackIsBitExact(t *testing.T) {
	var src []float32
	for hi := range uint32(1 << 16) {
		for _, lo := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			src = append(src, math.Float32frombits(hi<<16|lo))
		}
	}
	rng := tensor.NewRNG(3, tensor.PurposeData, 0)
	for i := range uint64(1 << 20) {
		src = append(src, math.Float32frombits(rng.Uint32(i)))
	}
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		dst := make([]tensor.BFloat16, len(src))
		v.Pack(dst, src)
		for i, x := range src {
			if want := tensor.BF16FromFloat32(x); dst[i] != want {
				t.Fatalf("%v: %#x packs to %#x, want %#x", tier, math.Float32bits(x), dst[i], want)
			}
		}
	}
}

func TestUnpackIsExactAndBothKeepToTheirLength(t *testing.T) {
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		for _, n := range append(lengths(), 1<<16) {
			narrow, wide := make([]tensor.BFloat16, n+9), make([]float32, n+9)
			for i := range narrow {
				narrow[i], wide[i] = tensor.BFloat16(i), 12345
			}
			v.Unpack(wide[:n], narrow)
			for i, x := range wide {
				want := narrow[i].Float32()
				if i >= n {
					want = 12345
				}
				if math.Float32bits(x) != math.Float32bits(want) {
					t.Fatalf("%v: unpack(%d): element %d is %v, want %v", tier, n, i, x, want)
				}
			}
			v.Pack(narrow[:n], make([]float32, n))
			for i, b := range narrow {
				if i < n && b != 0 || i >= n && b != tensor.BFloat16(i) {
					t.Fatalf("%v: pack(%d): element %d is %#x", tier, n, i, b)
				}
			}
		}
	}
}
