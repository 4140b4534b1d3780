package flash

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// numbers returns n normal float32 numbers.
func numbers(n int, seed uint64) []float32 {
	rng := tensor.NewRNG(seed, tensor.PurposeInit, 0)
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.Normals(uint64(i))[0])
	}
	return x
}

// vectorTiers calls f with the assembly of each tier that this machine runs.
func vectorTiers(t *testing.T, f func(t *testing.T, k kernels[float32])) {
	for _, tier := range isa.Tiers() {
		if tier == isa.AVX2 || tier == isa.AVX512 || tier == isa.NEON {
			t.Run(tier.String(), func(t *testing.T) { f(t, kernels32(tier)) })
		}
	}
}

// near compares assembly with Go, which may add in another order; elements that neither writes must be equal.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 2e-6*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("%s: element %d is %v, in Go %v", what, i, got[i], want[i])
		}
	}
}

func TestMulMatchesGo(t *testing.T) {
	vectorTiers(t, func(t *testing.T, k kernels[float32]) {
		for _, depth := range []int{1, 2, 3, 7, 64} {
			for _, transposed := range []bool{false, true} {
				for _, add := range []bool{false, true} {
					m, n, ld := 3*k.tileM, k.tileN, k.tileN+16
					rs, cs := 70, 1
					if transposed {
						rs, cs = 1, 70
					}
					a, b := numbers(70*70, 1), numbers(depth*ld, 2)
					got := numbers(m*ld, 3)
					want := slices.Clone(got)
					k.mul(got, ld, a, rs, cs, b, ld, m, depth, add)
					for c := 0; c < n; c += 4 {
						mulGo(want[c:], ld, a, rs, cs, b[c:], ld, m, depth, add)
					}
					near(t, fmt.Sprintf("k %d, transposed %v, add %v", depth, transposed, add), got, want)
				}
			}
		}
	})
}

// columns runs a portable primitive, whose panels are four columns wide, on wider ones.
func columns(x []float32, rows, width int, f func(panel []float32, c int)) {
	for c := 0; c < width; c += 4 {
		panel := make([]float32, rows*4)
		for r := range rows {
			copy(panel[r*4:r*4+4], x[r*width+c:])
		}
		f(panel, c)
		for r := range rows {
			copy(x[r*width+c:r*width+c+4], panel[r*4:])
		}
	}
}

func TestSoftmaxMatchesGo(t *testing.T) {
	vectorTiers(t, func(t *testing.T, k kernels[float32]) {
		n := k.tileN
		for _, rows := range []int{1, 2, 3, 64} {
			s, m, l, alpha := numbers(rows*n, 1), numbers(n, 2), numbers(n, 3), make([]float32, n)
			s[0], m[1] = negInf[float32](), lowest[float32]()
			if rows > 2 {
				s[2*n+3] = -300 // from here on powers are 0
			}
			s2, m2, l2, alpha2 := slices.Clone(s), slices.Clone(m), slices.Clone(l), make([]float32, n)
			k.softmax(s, rows, 0.7, m, l, alpha)
			columns(s2, rows, n, func(panel []float32, c int) {
				softmaxGo(panel, rows, 0.7, m2[c:], l2[c:], alpha2[c:])
			})
			near(t, "s", s, s2)
			near(t, "m", m, m2)
			near(t, "l", l, l2)
			near(t, "alpha", alpha, alpha2)
		}
	})
}

func TestGradMatchesGo(t *testing.T) {
	vectorTiers(t, func(t *testing.T, k kernels[float32]) {
		n := k.tileN
		for _, rows := range []int{1, 5} {
			s, dp, lse, delta := numbers(rows*n, 1), numbers(rows*n, 2), numbers(n, 3), numbers(n, 4)
			s[0], lse[1] = negInf[float32](), -negInf[float32]()
			s2, dp2 := slices.Clone(s), slices.Clone(dp)
			k.grad(s, dp, s, dp, n, rows, 0.7, lse, delta)
			for c := 0; c < n; c += 4 {
				gradGo(s2[c:], dp2[c:], s2[c:], dp2[c:], n, rows, 0.7, lse[c:], delta[c:])
			}
			near(t, "p", s, s2)
			near(t, "ds", dp, dp2)
		}
	})
}

func TestColumnsMatchGo(t *testing.T) {
	vectorTiers(t, func(t *testing.T, k kernels[float32]) {
		n := k.tileN
		for _, c := range [][3]int{{1, 1, n}, {3, 5, 6 * n}, {16, 64, 64 * n}} { // keys, size, block
			keys, size, block := c[0], c[1], c[2]
			a, b := numbers(max(keys, size)*n, 1), numbers(keys*block, 2)
			check := func(what string, rows int, got, want func(d, x, y []float32, keys, size, block int)) {
				d := numbers(rows*n+1, 3)
				d2 := slices.Clone(d)
				got(d, a, b, keys, size, block)
				want(d2, a, b, keys, size, block)
				near(t, fmt.Sprint(what, c), d, d2)
			}
			check("dot", keys, k.dotColumns, dotColumnsGo[float32](n))
			check("sum", size, k.sumColumns, sumColumnsGo[float32](n))
			check("add", keys*block/n, k.addColumns, addColumnsGo[float32](n))
		}
	})
}

func TestTransposeMatchesGo(t *testing.T) {
	vectorTiers(t, func(t *testing.T, k kernels[float32]) {
		n, cols := k.tileN, 2*k.tileN
		src, got := numbers(n*cols, 1), make([]float32, n*cols)
		k.transpose(got, src, cols, cols)
		for c := range cols {
			for r := range n {
				if got[c*n+r] != src[r*cols+c] {
					t.Fatalf("[%d, %d] is %v, want %v", c, r, got[c*n+r], src[r*cols+c])
				}
			}
		}
	})
}

func TestRowsMatchGo(t *testing.T) {
	vectorTiers(t, func(t *testing.T, k kernels[float32]) {
		const rows, ld = 5, 128
		a, b, f := numbers(rows*ld, 1), numbers(rows*ld, 2), numbers(rows, 3)
		for cols := k.tileN; cols <= ld; cols += k.tileN {
			got, want := make([]float32, rows), make([]float32, rows)
			k.dot(got, a, b, ld, rows, cols)
			dotGo(want, a, b, ld, rows, cols)
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 1e-5*math.Sqrt(float64(cols)) {
					t.Fatalf("dot of %d columns is %v, in Go %v", cols, got[i], want[i])
				}
			}
			x, y := slices.Clone(a), slices.Clone(a)
			k.scaleRows(x, ld, rows, cols, f)
			scaleRowsGo(y, ld, rows, cols, f)
			near(t, "scaleRows", x, y)
		}
	})
}

// Loads and stores agree with the scalar conversions bit for bit, with tails and every kind of number.
func TestLoadsAndStoresMatchGo(t *testing.T) {
	vectorTiers(t, func(t *testing.T, k kernels[float32]) {
		const rows, ld, stride = 3, 80, 96
		wide := numbers(rows*stride, 1)
		for i, bits := range []uint32{
			0x7fc00001, 0x7f800001, 0xff800000, 0x7f7fffff, 0x3f808000, 0x3f818000, 0x00000001, 0x80000000, 0x3f807fff,
		} {
			wide[i], wide[stride+20+i] = math.Float32frombits(bits), math.Float32frombits(bits)
		}
		narrow := make([]tensor.BFloat16, len(wide))
		for i, x := range wide {
			narrow[i] = tensor.BF16FromFloat32(x)
		}
		for _, cols := range []int{1, 15, 16, 17, 64, 79} {
			for _, scale := range []float32{1, 0.25, 1.7} {
				got, want := make([]float32, rows*ld), make([]float32, rows*ld)
				k.load(got, ld, wide, stride, rows, cols, scale)
				loadGo(want, ld, wide, stride, rows, cols, scale)
				same(t, "load", got, want)
				k.loadBF16(got, ld, narrow, stride, rows, cols)
				loadBF16Go(want, ld, narrow, stride, rows, cols)
				same(t, "loadBF16", got, want)
				gotN, wantN := make([]tensor.BFloat16, rows*stride), make([]tensor.BFloat16, rows*stride)
				k.storeBF16(gotN, stride, wide, ld, rows, cols, scale)
				storeBF16Go(wantN, stride, wide, ld, rows, cols, scale)
				if !slices.Equal(gotN, wantN) {
					t.Fatalf("storeBF16 of %d columns: %x, in Go %x", cols, gotN, wantN)
				}
			}
		}
	})
}

func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %v, in Go %v", what, i, got[i], want[i])
		}
	}
}

// Powers of two are within the bound that gen/softmax.go states, for every 997th float32 between −126 and 0, and right
// outside of that range.
func TestPowersOfTwoAreWithinTheirBound(t *testing.T) {
	vectorTiers(t, func(t *testing.T, k kernels[float32]) {
		n := k.tileN
		s, dp, zero := make([]float32, n), make([]float32, n), make([]float32, n)
		var worst float64
		for bits := uint32(0x80000000); bits < math.Float32bits(-126); bits += 997 * uint32(n) {
			for i := range s {
				s[i] = math.Float32frombits(min(bits+uint32(997*i), math.Float32bits(-126)))
			}
			x := slices.Clone(s)
			k.grad(s, dp, s, dp, n, 1, 1, zero, zero)
			for i := range x {
				want := math.Exp2(float64(x[i]))
				worst = max(worst, math.Abs(float64(s[i])-want)/want)
			}
		}
		if worst > 1.2e-7 {
			t.Errorf("2^x is off by %.3g relative, stated 1.2e-7", worst)
		}
		copy(s, []float32{negInf[float32](), -127, -1e30, float32(math.NaN()), 100})
		k.grad(s, dp, s, dp, n, 1, 1, zero, zero)
		if s[0] != 0 || s[1] != 0 || s[2] != 0 || s[3] == s[3] || math.Abs(float64(s[4])/0x1p100-1) > 1.2e-7 {
			t.Errorf("2^x at -Inf, -127, -1e30, NaN, 100 is %v", s[:5])
		}
	})
}
