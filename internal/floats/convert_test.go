package floats

import (
	"math"
	"testing"
)

// Conversion agrees with the definition: the nearest of all BF16 values, ties to the even one.
func TestBFloat16RoundsToNearestEven(t *testing.T) {
	for u := uint64(0); u < 1<<32; u += 7919 {
		v := math.Float32frombits(uint32(u))
		got := math.Float32frombits(uint32(ToBF16(v)) << 16)
		if v != v {
			if got == got {
				t.Fatalf("NaN %08x became %v", u, got)
			}
			continue
		}
		down := math.Float32frombits(uint32(u) &^ 0xffff)
		up := math.Float32frombits((uint32(u) &^ 0xffff) + 0x10000)
		dDown, dUp := math.Abs(float64(v)-float64(down)), math.Abs(float64(up)-float64(v))
		want := down
		if dUp < dDown || dUp == dDown && uint32(u)>>16&1 == 1 {
			want = up
		}
		if math.IsInf(float64(up), 0) { // infinity counts as the next value of the binade
			want = down
			if uint32(u)&0xffff >= 0x8000 {
				want = up
			}
		}
		if got != want && !math.IsInf(float64(v), 0) {
			t.Fatalf("ToBF16(%v = %08x) = %v, want %v", v, u, got, want)
		}
	}
}

func TestFloat16IsExact(t *testing.T) {
	for h := range 1 << 16 {
		sign, exp, frac := 1-2*float64(h>>15), h>>10&31, float64(h&0x3ff)
		want := sign * math.Ldexp(1+frac/1024, exp-15)
		switch {
		case exp == 0:
			want = sign * math.Ldexp(frac, -24)
		case exp == 31 && frac == 0:
			want = math.Inf(int(sign))
		case exp == 31:
			want = math.NaN()
		}
		got := float64(FromF16(uint16(h)))
		if got != want && !(got != got && want != want) || math.Signbit(got) != (h>>15 == 1) {
			t.Fatalf("FromF16(%04x) = %v, want %v", h, got, want)
		}
	}
}

// Every F16 number converts to itself, and the middle between two neighbours to the even one.
func TestF16IsRoundedToNearestEven(t *testing.T) {
	for c := range uint16(0x7c00) {
		for _, sign := range []uint16{0, 0x8000} {
			v := FromF16(sign | c)
			if got := ToF16(v); got != sign|c {
				t.Fatalf("%v, which is %#04x, is written as %#04x", v, sign|c, got)
			}
			next := FromF16(sign | c + 1)
			if c == 0x7bff {
				next = v * (65536.0 / 65504)
			}
			middle := (v + next) / 2 // exact in float32
			if got, want := ToF16(middle), sign|c+c&1; got != want {
				t.Fatalf("%v, between %#04x and %#04x, is written as %#04x", middle, sign|c, sign|(c+1), got)
			}
		}
	}
	for _, c := range []struct {
		v    float64
		want uint16
	}{{math.Inf(-1), 0xfc00}, {math.NaN(), 0x7e00}, {1e30, 0x7c00}} {
		if got := ToF16(float32(c.v)); got != c.want {
			t.Errorf("%v is written as %#04x, want %#04x", c.v, got, c.want)
		}
	}
}
