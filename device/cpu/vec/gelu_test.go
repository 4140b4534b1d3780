package vec

import (
	"math"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// geluByTanh computes GPT-2's formula as written in the papers, in float64, as an independent reference.
func geluByTanh(x float64) (y, slope float64) {
	u := math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x)
	th := math.Tanh(u)
	return 0.5 * x * (1 + th), 0.5*(1+th) + 0.5*x*(1-th*th)*math.Sqrt(2/math.Pi)*(1+3*0.044715*x*x)
}

func TestGELUIsTheTanhFormula(t *testing.T) {
	var xs []float32
	for x := float32(-12); x <= 12; x += 0.0037 {
		xs = append(xs, x)
	}
	xs = append(xs, 0, 1e-20, -1e-20, 1e-40, 40, 1e4, 1e13, 3e38, -40, -1e4, -1e13, -3e38)
	n := len(xs)
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		y, d := make([]float32, n), make([]float32, n)
		v.GELU(y, xs)
		v.GELUGrad(d, ones, xs)
		for i, x := range xs {
			want, slope := geluByTanh(float64(x))
			if math.Abs(float64(x)) > 1e3 { // the cube overflows, or gives 0·∞
				want, slope = math.Max(float64(x), 0), 0
				if x > 0 {
					slope = 1
				}
			}
			if got := float64(y[i]); !(math.Abs(got-want) <= 3e-7*math.Max(1, math.Abs(want))) {
				t.Errorf("%v: gelu(%v) = %v, want %v", tier, x, got, want)
			}
			if got := float64(d[i]); !(math.Abs(got-slope) <= 5e-7) {
				t.Errorf("%v: gelu'(%v) = %v, want %v", tier, x, got, slope)
			}
		}
	}
}

// Every tier agrees with portable float64 on every length, a NaN stays in its element, and nothing past the end
// changes.
func TestGELUOnEveryLength(t *testing.T) {
	ref, nan := Float64(), float32(math.NaN())
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		for _, n := range lengths() {
			x, dact, y, dx := normals(1, n+7), normals(2, n+7), normals(3, n+7), normals(4, n+7)
			guard := [2]float32{y[n], dx[n]}
			if n > 3 {
				x[n-2] = nan
			}
			wantY, wantDX := make([]float64, n), make([]float64, n)
			ref.GELU(wantY, widen(x[:n]))
			ref.GELUGrad(wantDX, widen(dact[:n]), widen(x[:n]))
			v.GELU(y[:n], x)
			v.GELUGrad(dx[:n], dact, x)
			if n > 3 {
				for _, row := range [][]float32{y, dx} {
					if !math.IsNaN(float64(row[n-2])) {
						t.Fatalf("%v: %d elements: NaN became %v", tier, n, row[n-2])
					}
					row[n-2] = 0
				}
				wantY[n-2], wantDX[n-2] = 0, 0
			}
			near(t, "GELU", y[:n], wantY, 1e-6)
			near(t, "GELUGrad", dx[:n], wantDX, 2e-6)
			if y[n] != guard[0] || dx[n] != guard[1] {
				t.Fatalf("%v: %d elements: something past the end changed", tier, n)
			}
		}
	}
}

// The one-pass primitives for LayerNorm, GELU and biases give the same bits as separate passes, also for NaN and
// infinities, and touch nothing past their length.
func TestNarrowLayerNormAndGELUAreBitEqualToPasses(t *testing.T) {
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		p := v.Narrow
		if p == nil {
			continue
		}
		for n := 0; n < 140; n += p.Multiple {
			h := make([]bf16s, 4)
			for i := range h {
				h[i] = make(bf16s, n+9)
				v.Pack(h[i], normals(uint32(i), n+9))
				for k := range n / 7 {
					h[i][7*k] = []tensor.BFloat16{0x7f80, 0xff80, 0x7f81, 0, 0x8000, 0x0001, 0x7f7f}[(i+k)%7]
				}
			}
			f := make([][]float32, 6)
			for i := range f {
				f[i] = normals(uint32(9+i), n+9)
			}
			wide := func(x bf16s) []float32 {
				w := make([]float32, n)
				v.Unpack(w, x)
				return w
			}
			narrow := func(x []float32) bf16s {
				b := make(bf16s, n)
				v.Pack(b, x)
				return b
			}
			equal := func(what string, got bf16s, want bf16s, was bf16s) {
				t.Helper()
				for i := range got {
					w := was[i]
					if i < n {
						w = want[i]
					}
					if got[i] != w {
						t.Fatalf("%v: %s of %d elements: %#x at %d, want %#x", tier, what, n, got[i], i, w)
					}
				}
			}
			equalWide := func(what string, got, want, was []float32) {
				t.Helper()
				for i := range got {
					w := was[i]
					if i < n {
						w = want[i]
					}
					if math.Float32bits(got[i]) != math.Float32bits(w) && !(got[i] != got[i] && w != w) {
						t.Fatalf("%v: %s of %d elements: %v at %d, want %v", tier, what, n, got[i], i, w)
					}
				}
			}
			clone := func(x bf16s) bf16s { return append(bf16s(nil), x...) }
			cloneWide := func(x []float32) []float32 { return append([]float32(nil), x...) }

			got, want := clone(h[0]), make([]float32, n)
			p.GELU(got[:n], h[1])
			v.GELU(want, wide(h[1]))
			equal("GELU", got, narrow(want), h[0])

			got = clone(h[0])
			p.GELUGrad(got[:n], h[1], h[2])
			v.GELUGrad(want, wide(h[1]), wide(h[2]))
			equal("GELUGrad", got, narrow(want), h[0])

			const mean, r, dot = -0.3, 0.8, 0.7
			xhat := clone(h[1])
			got = clone(h[0])
			p.LayerNorm(got[:n], xhat, f[0], f[1], f[2], mean, r)
			v.Centre(want, f[0], mean, r)
			wantHat := narrow(want)
			v.Mul(want, wide(wantHat), f[1])
			v.Add(want, f[2])
			equal("LayerNorm's xhat", xhat, wantHat, h[1])
			equal("LayerNorm", got, narrow(want), h[0])

			again := clone(h[0])
			p.LayerNormAgain(again[:n], xhat, f[1], f[2])
			equal("LayerNormAgain", again, got, h[0])

			dx := cloneWide(f[3])
			p.LayerNormGrad(dx[:n], h[1], h[2], f[1], r, mean, dot)
			v.Mul(want, wide(h[1]), f[1])
			v.Axpy(want, wide(h[2]), -dot)
			v.Centre(want, want, mean, 1)
			wantDX := cloneWide(f[3])
			v.Axpy(wantDX[:n], want, r)
			equalWide("LayerNormGrad", dx, wantDX, f[3])

			sum := cloneWide(f[4])
			p.Add(sum[:n], h[2])
			wantSum := cloneWide(f[4])
			v.Add(wantSum[:n], wide(h[2]))
			equalWide("Add", sum, wantSum, f[4])

			for i := range h {
				v.Pack(h[i], normals(uint32(i), n+9)) // sums of finite numbers
			}
			dgain, dbias, wantGain, wantBias := cloneWide(f[4]), cloneWide(f[5]), cloneWide(f[4]), cloneWide(f[5])
			var sums [2]float32
			p.LayerNormDot(dgain[:n], dbias, h[1], h[2], f[1], &sums)
			v.MulAdd(wantGain[:n], wide(h[1]), wide(h[2]))
			v.Add(wantBias[:n], wide(h[1]))
			equalWide("LayerNormDot's dgain", dgain, wantGain, f[4])
			equalWide("LayerNormDot's dbias", dbias, wantBias, f[5])
			v.Mul(want, wide(h[1]), f[1])
			for i, w := range []float64{v.Sum(want), float64(v.Dot(want, wide(h[2])))} {
				if d := math.Abs(float64(sums[i]) - w); d > 1e-5*(1+math.Abs(w)) {
					t.Fatalf("%v: %d elements: sum %d of LayerNormDot is %v, want %v", tier, n, i, sums[i], w)
				}
			}
		}
	}
}
