package vec

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"anneal/internal/isa"
)

// The step on 8-bit moments has the same bits as its parts, over some steps of gradients of very different sizes, with
// blocks whose gradients are all 0.
func TestAdamW8IsItsParts(t *testing.T) {
	const blocks, n = 5, 5 * 256
	type state struct {
		p, mTop, vTop []float32
		m, v          []byte
	}
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		if v.AdamW8 == nil {
			continue
		}
		o := &AdamW8[float32]{
			AdamW: *adamWOf[float32](0), Signed: NewCode[float32](true), Unsigned: NewCode[float32](false),
			Moments: make([]float32, 512),
		}
		var s [2]state
		for i := range s {
			s[i] = state{
				normals(1, n), make([]float32, blocks+1), make([]float32, blocks+1), make([]byte, n+1),
				make([]byte, n+1),
			}
			s[i].mTop[blocks], s[i].vTop[blocks], s[i].m[n], s[i].v[n] = 7, 7, 7, 7
		}
		for step := range 6 {
			g := normals(uint32(2+step), n)
			for i := range g {
				g[i] *= float32(math.Pow(10, float64(-i%9)))
				switch {
				case i/256 == 1:
					g[i] = 0
				case i/256 == 2:
					g[i] *= 1e-19 // the squares are subnormal
				}
			}
			a, b := &s[0], &s[1]
			v.AdamW8(a.p, g, a.m, a.v, a.mTop[:blocks], a.vTop[:blocks], o)
			for i := range blocks {
				m, sq, at := make([]float32, 256), make([]float32, 256), 256*i
				v.Decode(m, b.m[at:at+256], o.Signed, b.mTop[i])
				v.Decode(sq, b.v[at:at+256], o.Unsigned, b.vTop[i])
				v.AdamW(b.p[at:at+256], g[at:], m, sq, &o.AdamW)
				for _, c := range []struct {
					x     []float32
					top   *float32
					codes []byte
					code  *Code[float32]
				}{{m, &b.mTop[i], b.m, o.Signed}, {sq, &b.vTop[i], b.v, o.Unsigned}} {
					*c.top = v.MaxAbs(c.x)
					inverse := 1 / *c.top
					if *c.top < 0x1p-126 {
						*c.top, inverse = 0, 0
					}
					v.Encode(c.codes[at:at+256], c.x, c.code, inverse)
				}
			}
			if !slices.Equal(a.p, b.p) || !slices.Equal(a.mTop, b.mTop) || !slices.Equal(a.vTop, b.vTop) {
				t.Fatalf("%v, step %d: parameters or largest magnitudes are not those of the parts; %v and %v, "+
					"want %v and %v", tier, step, a.mTop, a.vTop, b.mTop, b.vTop)
			}
			for i := range a.m {
				if a.m[i] != b.m[i] || a.v[i] != b.v[i] {
					t.Fatalf("%v, step %d: codes %d are %d and %d, want %d and %d",
						tier, step, i, a.m[i], a.v[i], b.m[i], b.v[i])
				}
			}
		}
	}
}

// The offsets in the assembly match the compiler's layout of AdamW8.
func TestAdamW8Layout(t *testing.T) {
	var o AdamW8[float32]
	for name, at := range map[string][2]uintptr{
		"Signed": {unsafe.Offsetof(o.Signed), 40}, "Unsigned": {unsafe.Offsetof(o.Unsigned), 48},
		"Moments": {unsafe.Offsetof(o.Moments), 56},
	} {
		if at[0] != at[1] {
			t.Errorf("%s is at %d, the assembly reads it at %d", name, at[0], at[1])
		}
	}
}
