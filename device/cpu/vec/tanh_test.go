package vec

import (
	"math"
	"testing"

	"anneal/internal/isa"
)

// The error is within the bound that tanh.go states, in units of the last place of the exact result.
func TestTanhErrorIsWithinItsBound(t *testing.T) {
	const stride = 997 // of the bit patterns up to 20, both signs
	var xs []float32
	for bits := uint32(0); bits < math.Float32bits(20); bits += stride {
		xs = append(xs, math.Float32frombits(bits), -math.Float32frombits(bits))
	}
	for _, tier := range isa.Tiers() {
		v, worst, at := Float32(tier), 0.0, float32(0)
		dst := make([]float32, len(xs))
		v.Softcap(dst, xs, 1)
		for i, x := range xs {
			want := math.Tanh(float64(x))
			ulp := math.Ldexp(1, -149)
			if want != 0 {
				ulp = math.Ldexp(1, max(math.Ilogb(want)-23, -149))
			}
			if err := math.Abs(float64(dst[i])-want) / ulp; err > worst {
				worst, at = err, x
			}
			if i%2 == 1 && dst[i] != -dst[i-1] {
				t.Fatalf("%v: tanh(%v) = %v, but tanh of the opposite is %v", tier, x, dst[i], dst[i-1])
			}
		}
		t.Logf("%v: at most %.3f ulp, at %v, of %d arguments", tier, worst, at, len(xs))
		if worst >= 5 {
			t.Errorf("%v: tanh(%v) is off by %.3f ulp", tier, at, worst)
		}
	}
}

// A capped value never exceeds the cap; NaN stays NaN.
func TestSoftcapLimits(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		for _, limit := range []float32{1e-3, 1, 15, 30, 1e6} {
			for _, c := range []struct{ x, want float32 }{
				{inf, limit}, {-inf, -limit}, {math.MaxFloat32, limit}, {-math.MaxFloat32, -limit}, {20 * limit, limit},
				{0, 0}, {nan, nan},
			} {
				for _, n := range []int{1, 8, 16, 37} {
					x := make([]float32, n)
					x[n-1] = c.x
					v.Softcap(x, x, limit)
					if got := x[n-1]; got != c.want && !(got != got && c.want != c.want) {
						t.Errorf("%v: %v capped at %v is %v, want %v", tier, c.x, limit, got, c.want)
					}
				}
			}
			for x := float32(-12); x <= 12; x += 0.003 {
				y := []float32{x * limit}
				if v.Softcap(y, y, limit); !(y[0] <= limit && y[0] >= -limit) {
					t.Fatalf("%v: %v capped at %v is %v", tier, x*limit, limit, y[0])
				}
			}
		}
	}
}
