package optim

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/isa"
	"anneal/tensor"
)

// orthogonalised returns NewtonSchulz of a rows×cols matrix, computed by a tier in a format.
func orthogonalised(t testing.TB, tier isa.Tier, dtype tensor.DType, n NewtonSchulz, rows, cols int,
	values []float64) []float64 {
	t.Helper()
	dev := cpu.NewTier(tier, 2)
	defer dev.Close()
	measured := tensor.NewMeasure("scratch")
	x := measured.New(dtype, rows, cols)
	new(Orthogonaliser).Run(n, device.Null{}, &x, measured)
	a, err := tensor.NewArena("scratch", measured.Peak())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	x = a.New(dtype, rows, cols)
	fill(&x, values, 1)
	y := new(Orthogonaliser).Run(n, dev, &x, a)
	result := make([]float64, len(values))
	for i := range result {
		result[i] = y.Float64(i)
	}
	return result
}

// gaussian returns n standard normal numbers.
func gaussian(seed uint64, n int) []float64 {
	rng := tensor.NewRNG(seed, tensor.PurposeData, 0)
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.Normals(uint64(i / 4))[i%4]
	}
	return x
}

func transposed(x []float64, rows, cols int) []float64 {
	y := make([]float64, len(x))
	for i := range rows {
		for j := range cols {
			y[j*rows+i] = x[i*cols+j]
		}
	}
	return y
}

// apart returns the largest difference between two matrices.
func apart(a, b []float64) float64 {
	d := 0.0
	for i := range a {
		d = math.Max(d, math.Abs(a[i]-b[i]))
	}
	return d
}

// OPT-15: on a diagonal matrix the iteration is its polynomial, on every singular value by itself. The table is
// Jordan's map after five steps, evaluated in float64.
func TestDiagonalsGoThroughThePolynomial(t *testing.T) {
	table := []struct{ sigma, want float64 }{
		{0.01, .698917}, {0.05, .758120}, {0.1, .712120}, {0.5, .765439}, {0.001, .4705},
	}
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		n := len(table) + 1
		x := make([]float64, n*n)
		norm := 0.0
		for i, c := range table {
			x[i*n+i] = c.sigma
			norm += c.sigma * c.sigma
		}
		x[n*n-1] = math.Sqrt(1 - norm) // so that the norm is 1 and the values stay what they are
		got := orthogonalised(t, tier, dtype, Jordan(), n, n, x)
		for i, c := range table {
			if v := got[i*n+i]; math.Abs(v-c.want) > 6e-5 {
				t.Errorf("σ = %v becomes %v, want %v", c.sigma, v, c.want)
			}
		}
		for i := range n {
			for j := range n {
				if v := got[i*n+j]; i != j && v != 0 {
					t.Errorf("element %d,%d of a diagonal matrix becomes %v", i, j, v)
				}
			}
		}
	})
}

// The ranges that the two sets of coefficients promise, over singular values from 0.001 (0.002) to 1.
func TestSingularValuesComeNearOne(t *testing.T) {
	for _, c := range []struct {
		name            string
		n               NewtonSchulz
		from, low, high float64
	}{{"jordan", Jordan(), 0.002, 0.68, 1.21}, {"polar express", PolarExpress(), 0.001, 0.84, 1.15}} {
		low, high := math.Inf(1), 0.0
		for i := range 20001 {
			x := math.Pow(c.from, 1-float64(i)/20000) / c.n.Margin
			for _, p := range c.n.Polynomials {
				x = x * (p[0] + x*x*(p[1]+x*x*p[2]))
			}
			low, high = math.Min(low, x), math.Max(high, x)
		}
		if low < c.low || high > c.high {
			t.Errorf("%s: singular values end in [%.4f, %.4f], want within [%v, %v]", c.name, low, high, c.low, c.high)
		}
	}
}

// OPT-16: transposing before or after is the same, and so is any positive factor on the input.
func TestOrthogonalisingIsEquivariant(t *testing.T) {
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		tolerance := map[tensor.DType]float64{tensor.F64: 1e-12, tensor.F32: 2e-5}[dtype]
		for _, s := range [][2]int{{1, 5}, {7, 3}, {20, 33}, {64, 40}} {
			rows, cols := s[0], s[1]
			x := gaussian(uint64(rows), rows*cols)
			for _, n := range []NewtonSchulz{Jordan(), PolarExpress()} {
				want := orthogonalised(t, tier, dtype, n, rows, cols, x)
				turned := orthogonalised(t, tier, dtype, n, cols, rows, transposed(x, rows, cols))
				if d := apart(transposed(turned, cols, rows), want); d > tolerance {
					t.Errorf("%dx%d: NS(Gᵀ)ᵀ is off NS(G) by %g, allowed %g", rows, cols, d, tolerance)
				}
				scaled := make([]float64, len(x))
				for i, v := range x {
					scaled[i] = 1e-4 * v
				}
				if d := apart(orthogonalised(t, tier, dtype, n, rows, cols, scaled), want); d > tolerance {
					t.Errorf("%dx%d: NS(G/10000) is off NS(G) by %g, allowed %g", rows, cols, d, tolerance)
				}
			}
		}
	})
}

// With operands in BF16 the iteration is that of float64 whose operands are rounded before every product: off it by a
// fraction of what the rounding costs.
func TestOperandsOfNewtonSchulzAreRounded(t *testing.T) {
	const rows, cols = 24, 40
	x := gaussian(5, rows*cols)
	rounded := func(x []float64) []float64 {
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = float64(tensor.BF16FromFloat32(float32(v)).Float32())
		}
		return y
	}
	product := func(a, b []float64, m, n, k int) []float64 { // [m, n] of a [m, k] and b [k, n]
		a, b = rounded(a), rounded(b)
		c := make([]float64, m*n)
		for i := range m {
			for j := range n {
				for p := range k {
					c[i*n+j] += a[i*k+p] * b[p*n+j]
				}
			}
		}
		return c
	}
	norm := 0.0
	for _, v := range x {
		norm += v * v
	}
	n := PolarExpress()
	want := make([]float64, len(x))
	for i, v := range x {
		want[i] = v / (math.Sqrt(norm) * n.Margin)
	}
	for _, p := range n.Polynomials {
		gram := product(want, transposed(want, rows, cols), rows, rows, cols)
		poly := product(gram, gram, rows, rows, rows)
		for i := range poly {
			poly[i] = p[1]*gram[i] + p[2]*poly[i]
			if i/rows == i%rows {
				poly[i] += p[0]
			}
		}
		want = product(poly, want, rows, cols, rows)
	}
	for _, tier := range isa.Tiers() {
		exact := orthogonalised(t, tier, tensor.F32, n, rows, cols, x)
		n := n
		n.Operand = tensor.BF16
		got := orthogonalised(t, tier, tensor.F32, n, rows, cols, x)
		off, cost := apart(got, want), apart(got, exact)
		if off > cost/4 || cost > 0.1 {
			t.Errorf("%v: %g off rounded operands, %g off exact ones", tier, off, cost)
		}
	}
}

// OPT-18: NS(Q·G) = Q·NS(G) for orthogonal Q, here a Householder reflection.
func TestOrthogonalisingFollowsRotations(t *testing.T) {
	const rows, cols = 12, 17
	g, v := gaussian(1, rows*cols), gaussian(2, rows)
	reflected := func(x []float64) []float64 {
		y, size := append([]float64(nil), x...), 0.0
		for _, a := range v {
			size += a * a
		}
		for j := range cols {
			dot := 0.0
			for i := range rows {
				dot += v[i] * x[i*cols+j]
			}
			for i := range rows {
				y[i*cols+j] -= 2 * dot / size * v[i]
			}
		}
		return y
	}
	for _, n := range []NewtonSchulz{Jordan(), PolarExpress()} {
		want := reflected(orthogonalised(t, isa.Generic, tensor.F64, n, rows, cols, g))
		got := orthogonalised(t, isa.Generic, tensor.F64, n, rows, cols, reflected(g))
		if d := apart(got, want); d > 1e-9 {
			t.Errorf("NS(Q·G) is off Q·NS(G) by %g", d)
		}
	}
}

// OPT-19: 0.2·√max(rows, cols) makes the update's root mean square AdamW's, whatever the shape.
func TestUpdatesOfGaussiansHaveTheSizeOfAdamW(t *testing.T) {
	for _, s := range [][2]int{{64, 64}, {256, 64}, {128, 512}, {256, 1024}} {
		for _, c := range []struct {
			name      string
			n         NewtonSchulz
			low, high float64
		}{{"jordan", Jordan(), .16, .20}, {"polar express", PolarExpress(), .195, .21}} {
			rows, cols := s[0], s[1]
			tier := isa.Tiers()[0]
			sum := 0.0
			for _, v := range orthogonalised(t, tier, tensor.F32, c.n, rows, cols, gaussian(3, rows*cols)) {
				sum += v * v
			}
			if rms := MatchRMS(rows, cols) * math.Sqrt(sum/float64(rows*cols)); rms < c.low || rms > c.high {
				t.Errorf("%s %dx%d: root mean square %.4f, want in [%v, %v]", c.name, rows, cols, rms, c.low, c.high)
			}
		}
	}
}

// The result of a step of G-block's first gradient, from the reference in float64.
func TestOrthogonalisingTheReferenceBlock(t *testing.T) {
	want := []float64{-.568290272625, -.057741941694, .683774156014, .563354815993, -.405612898255, .247870980517}
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		// 1e-6: it adds 1e-7 to the norm
		tolerance := map[tensor.DType]float64{tensor.F64: 1e-6, tensor.F32: 1e-5}[dtype]
		got := orthogonalised(t, tier, dtype, Jordan(), 2, 3, []float64{.1, -.2, .3, .4, -.5, .6})
		if d := apart(got, want); d > tolerance {
			t.Errorf("off the reference by %g: %v, want %v", d, got, want)
		}
	})
}

// A gradient of zeros stays zeros: there is no direction to go.
func TestOrthogonalisingNothingIsNothing(t *testing.T) {
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		for i, v := range orthogonalised(t, tier, dtype, PolarExpress(), 3, 4, make([]float64, 12)) {
			if v != 0 {
				t.Fatalf("element %d is %v", i, v)
			}
		}
	})
}
