package vec

import (
	"math"
	"testing"
	"unsafe"

	"anneal/internal/isa"
)

// Every tier finds the nearest number, in every part of the range and around every midpoint, and decodes each code to
// its number. Without signs only 0 becomes 0.
func TestCodesAreTheNearestNumbers(t *testing.T) {
	for _, signed := range []bool{true, false} {
		code := NewCode[float32](signed)
		var src []float32
		for bits := uint32(0); bits <= math.Float32bits(1); bits += 43_210 {
			src = append(src, math.Float32frombits(bits))
		}
		for i, m := range code.Mids[:255] {
			src = append(src, m, math.Nextafter32(m, -2), math.Nextafter32(m, 2), code.Values[i])
		}
		if signed {
			for _, x := range src {
				src = append(src, -x)
			}
		}
		for _, tier := range isa.Tiers() {
			v := Float32(tier)
			codes, back := make([]byte, len(src)), make([]float32, len(src))
			v.Encode(codes, src, code, 1)
			v.Decode(back, codes, code, 1)
			for i, x := range src {
				nearest := float64(math.Inf(1))
				for _, y := range code.Values {
					if y == 0 && x > 0 && !signed {
						continue
					}
					nearest = min(nearest, math.Abs(float64(x)-float64(y)))
				}
				if far := math.Abs(float64(x) - float64(back[i])); far > nearest+2e-7*math.Abs(float64(x)) {
					t.Fatalf("%v, signed %v: %v becomes %v, which is %v away; the nearest number is %v away",
						tier, signed, x, back[i], far, nearest)
				}
			}
			want := make([]byte, len(src))
			encode(want, src, code, 1)
			for i := range codes {
				if codes[i] != want[i] {
					t.Fatalf("%v, signed %v: %v has the code %d, in Go %d", tier, signed, src[i], codes[i], want[i])
				}
			}
		}
	}
}

// The scales multiply the numbers that are read and written, for any length.
func TestCodesOfScaledRows(t *testing.T) {
	code := NewCode[float32](true)
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		for n := range 40 {
			src := normals(uint32(n), n)
			top := v.MaxAbs(src)
			codes, back := make([]byte, n+1), make([]float32, n+1)
			codes[n], back[n] = 77, 77
			v.Encode(codes[:n], src, code, 1/top)
			v.Decode(back[:n], codes, code, top)
			for i, x := range src {
				if far := math.Abs(float64(back[i] - x)); far > 0.0071*float64(top) {
					t.Errorf("%v, %d numbers up to %v: %v comes back as %v", tier, n, top, x, back[i])
				}
			}
			if codes[n] != 77 || back[n] != 77 {
				t.Errorf("%v: %d numbers were written past their end", tier, n)
			}
		}
	}
}

// The offsets in the assembly match the compiler's layout of Code.
func TestCodeLayout(t *testing.T) {
	var c Code[float32]
	for name, at := range map[string][2]uintptr{
		"Values": {unsafe.Offsetof(c.Values), 0}, "Mids": {unsafe.Offsetof(c.Mids), 1024},
		"Slopes": {unsafe.Offsetof(c.Slopes), 2048}, "Offsets": {unsafe.Offsetof(c.Offsets), 2084},
		"Near": {unsafe.Offsetof(c.Near), 2120}, "Decades": {unsafe.Offsetof(c.Decades), 2376},
		"Bins": {unsafe.Offsetof(c.Bins), 2392},
	} {
		if at[0] != at[1] {
			t.Errorf("%s is at %d, the assembly reads it at %d", name, at[0], at[1])
		}
	}
}
