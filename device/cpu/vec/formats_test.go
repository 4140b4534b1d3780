package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// NUM-4: five million random bit patterns, including NaN and infinities, convert to the bits of the scalar conversions
// on every tier; a NaN only has to stay NaN.
func TestConversionsAreTheScalarOnes(t *testing.T) {
	rounds, n := 100, 50_003
	if testing.Short() {
		rounds = 10
	}
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]uint32, n)
	x, wide := make([]float32, n), make([]float32, n)
	narrow, half := make([]tensor.BFloat16, n), make([]tensor.Float16, n)
	grids := []struct {
		name  string
		grid  Grid[float32]
		round func(float32) float32
	}{
		{"e4m3", Grid[float32]{Top: 448, Least: 0x1p-6, Magic: 0x1.8p20},
			func(y float32) float32 { return tensor.E4M3FromFloat32(max(-448, min(448, y))).Float32() }},
		{"e5m2", Grid[float32]{Top: 57344, Least: 0x1p-14, Magic: 0x1.8p21},
			func(y float32) float32 { return tensor.E5M2FromFloat32(max(-57344, min(57344, y))).Float32() }},
	}
	for round := range rounds {
		for i := range x {
			x[i] = math.Float32frombits(r.Uint32())
			if i%4 == 0 { // an exponent near those of the narrow formats
				x[i] = math.Float32frombits(r.Uint32()&0x807fffff | (100+r.Uint32N(50))<<23)
			}
		}
		for i := range random {
			random[i] = r.Uint32() & 0xffff
		}
		scale := float32(math.Exp2(r.Float64()*20 - 10))
		for _, tier := range isa.Tiers() {
			v := Float32(tier)
			v.Pack(narrow, x)
			v.PackF16(half, x)
			for i, y := range x {
				if y != y {
					if a, b := narrow[i].Float32(), half[i].Float32(); a == a || b == b {
						t.Fatalf("%v: NaN becomes %v in bfloat16, %v in float16", tier, a, b)
					}
					continue
				}
				if want := tensor.BF16FromFloat32(y); narrow[i] != want {
					t.Fatalf("%v: %v (%#08x) becomes bfloat16 %#04x, want %#04x",
						tier, y, math.Float32bits(y), narrow[i], want)
				}
				if want := tensor.F16FromFloat32(y); half[i] != want {
					t.Fatalf("%v: %v (%#08x) becomes float16 %#04x, want %#04x",
						tier, y, math.Float32bits(y), half[i], want)
				}
			}
			v.PackStochastic(narrow, x, random)
			for i, y := range x {
				if want := tensor.BF16Stochastic(y, random[i]); narrow[i] != want &&
					!(y != y && narrow[i].Float32() != narrow[i].Float32()) {
					t.Fatalf("%v: %v (%#08x) becomes bfloat16 %#04x by %#04x, want %#04x",
						tier, y, math.Float32bits(y), narrow[i], random[i], want)
				}
			}
			g := grids[round%2]
			g.grid.Scale = scale
			v.Quantize(narrow, x, &g.grid)
			for i, y := range x {
				y = float32(y * scale) // rounded, on every machine, before what follows
				want := g.round(y)
				if y-y != 0 { // NaN and infinities
					want = y - y
				}
				if got := narrow[i].Float32(); math.Float32bits(got) != math.Float32bits(want) &&
					!(got != got && want != want) {
					t.Fatalf("%v, %s: %v·%v = %v is quantised to %v, want %v", tier, g.name, scale, x[i], y, got, want)
				}
			}
		}
	}
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		for offset := range uint16(2) {
			for c := range 1 << 15 {
				half[c] = tensor.Float16(uint16(2*c) + offset)
			}
			v.UnpackF16(wide[:1<<15], half[:1<<15])
			for c := range 1 << 15 {
				if got, want := wide[c], half[c].Float32(); math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("%v: float16 %#04x widens to %#08x, want %#08x",
						tier, half[c], math.Float32bits(got), math.Float32bits(want))
				}
			}
		}
	}
}

func TestMaxAbsFindsTheLargestAndNaN(t *testing.T) {
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		for _, n := range lengths() {
			x := normals(uint32(n), n+1)
			x[n] = 100 // past the end
			want := float32(0)
			for _, y := range x[:n] {
				want = max(want, y, -y)
			}
			if got := v.MaxAbs(x[:n]); got != want {
				t.Fatalf("%v: the largest magnitude of %d elements is %v, want %v", tier, n, got, want)
			}
			if n == 0 {
				continue
			}
			at := (7 * n / 3) % n
			x[at] = float32(math.Inf(-1))
			if got := v.MaxAbs(x[:n]); !math.IsInf(float64(got), 1) {
				t.Fatalf("%v: with −Inf at %d of %d the largest magnitude is %v", tier, at, n, got)
			}
			x[at] = float32(math.NaN())
			if got := v.MaxAbs(x[:n]); got == got {
				t.Fatalf("%v: with NaN at %d of %d the largest magnitude is %v", tier, at, n, got)
			}
		}
	}
}
