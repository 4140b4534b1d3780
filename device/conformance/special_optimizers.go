package conformance

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// decays checks that without a gradient and moments, decoupled decay multiplies a parameter by exactly 1 − LR·Decay,
// and that NaN in one gradient stays with its parameter.
func decays(t *testing.T, d bench, act, wide tensor.DType) {
	const n, bad = 70, 33
	o := device.AdamW{LR: .5, Beta1: .9, Beta2: .95, Eps: 1e-8, Decay: .25, Scale: 1, Correct1: 1, Correct2: 1}
	zeros := make([]float64, n)
	g := make([]float64, n)
	g[bad] = nan
	p := d.of(wide, normal(n, 11))
	want := read[float64](p, 0)
	d.AdamW(p, d.of(wide, g), d.of(wide, zeros), d.of(wide, zeros), o)
	d.wait(t)
	for i, w := range want {
		got := p.Float64(i)
		if i == bad && !math.IsNaN(got) || i != bad && math.Abs(got-w*.875) > 1e-7*math.Abs(w) {
			t.Errorf("%v: parameter %d goes from %v to %v, want %v", wide, i, w, got, w*.875)
		}
	}
}

// cautious checks that a weight decays only if its update takes it towards zero or does not move it.
func cautious(t *testing.T, d bench, _, wide tensor.DType) {
	const n = 37 // a vector and a rest, in every tier
	p, g, zeros := normal(n, 14), normal(n, 15), make([]float64, n)
	g[3], g[4], p[5] = 0, 0, 0
	p[3], p[4] = math.Abs(p[3]), -math.Abs(p[4])
	o := device.AdamW{
		LR: .5, Beta1: .9, Beta2: .95, Eps: 1e-8, Decay: .25, Cautious: true, Scale: 1, Correct1: 10, Correct2: 20,
	}
	got := d.of(wide, p)
	d.AdamW(got, d.of(wide, g), d.of(wide, zeros), d.of(wide, zeros), o)
	d.wait(t)
	for i := range p {
		want, update := p[i], 0.0
		if g[i] != 0 {
			update = math.Copysign(.5, g[i])
		}
		if update*p[i] >= 0 {
			want *= .875
		}
		want -= update
		if math.Abs(got.Float64(i)-want) > 1e-6 {
			t.Errorf("%v: parameter %d goes from %v by %v to %v, want %v", wide, i, p[i], -update, got.Float64(i), want)
		}
	}
}
