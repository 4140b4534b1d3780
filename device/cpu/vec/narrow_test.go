package vec

import (
	"math"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

type bf16s = []tensor.BFloat16

// passes returns the primitives of Narrow as separate passes over rows of float32: widen, compute, round.
func passes(v Table[float32]) Narrow[float32] {
	wide := func(x bf16s, n int) []float32 {
		w := make([]float32, n)
		v.Unpack(w, x)
		return w
	}
	return Narrow[float32]{
		SwiGLU: func(dst, gate, up bf16s) {
			act := make([]float32, len(dst))
			v.SwiGLU(act, wide(gate, len(dst)), wide(up, len(dst)))
			v.Pack(dst, act)
		},
		SwiGLUGrad: func(dgate, dup, act, dact, gate, up bf16s) {
			n := len(dgate)
			dg, du, a := make([]float32, n), make([]float32, n), make([]float32, n)
			v.SwiGLUGrad(dg, du, a, wide(dact, n), wide(gate, n), wide(up, n))
			v.Pack(act[:n], a)
			v.Pack(dgate, dg)
			v.Pack(dup[:n], du)
		},
		GeGLU: func(dst, gate, up bf16s) {
			act := make([]float32, len(dst))
			v.GeGLU(act, wide(gate, len(dst)), wide(up, len(dst)))
			v.Pack(dst, act)
		},
		GeGLUGrad: func(dgate, dup, act, dact, gate, up bf16s) {
			n := len(dgate)
			dg, du, a := make([]float32, n), make([]float32, n), make([]float32, n)
			v.GeGLUGrad(dg, du, a, wide(dact, n), wide(gate, n), wide(up, n))
			v.Pack(act[:n], a)
			v.Pack(dgate, dg)
			v.Pack(dup[:n], du)
		},
		ReLUSquared: func(dst, x bf16s) {
			w := wide(x, len(dst))
			v.ReLUSquared(w, w)
			v.Pack(dst, w)
		},
		ReLUSquaredGrad: func(dx, dact, x bf16s) {
			w := wide(x, len(dx))
			v.ReLUSquaredGrad(w, wide(dact, len(dx)), w)
			v.Pack(dx, w)
		},
		Normalise: func(y, xhat bf16s, x, gain []float32, r float32) {
			t := make([]float32, len(y))
			v.Scale(t, x, r)
			v.Pack(xhat[:len(y)], t)
			v.Mul(t, wide(xhat, len(y)), gain)
			v.Pack(y, t)
		},
		Mul: func(y, xhat bf16s, gain []float32) {
			t := wide(xhat, len(y))
			v.Mul(t, t, gain)
			v.Pack(y, t)
		},
		NormDot: func(dgain []float32, dy, xhat bf16s, gain []float32) float32 {
			t, h := wide(dy, len(dgain)), wide(xhat, len(dgain))
			v.MulAdd(dgain, t, h)
			v.Mul(t, t, gain)
			return v.Dot(t, h)
		},
		NormGrad: func(dx []float32, dy, xhat bf16s, gain []float32, r, mean float32) {
			t := wide(dy, len(dx))
			v.Mul(t, t, gain)
			v.Axpy(t, wide(xhat, len(dx)), -mean)
			v.Axpy(dx, t, r)
		},
		Rotate: func(cos, sin []float32, a, b bf16s, heads int) {
			for n := len(cos); heads > 0; heads-- {
				x, y := wide(a, n), wide(b, n)
				v.Rotate(x, y, cos, sin)
				v.Pack(a[:n], x)
				v.Pack(b[:n], y)
				if heads > 1 {
					a, b = a[2*n:], b[2*n:]
				}
			}
		},
		RotatePairs: func(cos, sin []float32, x bf16s, heads int) {
			for n := 2 * len(cos); heads > 0; heads-- {
				y := wide(x, n)
				v.RotatePairs(y, cos, sin)
				v.Pack(x[:n], y)
				x = x[n:]
			}
		},
	}
}

// The one-pass primitives give the same bits as separate passes, also for NaN and infinities, and touch nothing past
// their length.
func TestNarrowIsBitEqualToPasses(t *testing.T) {
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		if v.Narrow == nil {
			continue
		}
		for n := 0; n < 140; n += v.Narrow.Multiple {
			const heads = 3
			rows := func() (narrow [5]bf16s, wide [3][]float32) {
				for i := range narrow {
					narrow[i] = make(bf16s, 2*heads*n+9)
					v.Pack(narrow[i], normals(uint32(i), len(narrow[i])))
					for k := range n / 7 {
						narrow[i][7*k] = []tensor.BFloat16{0x7f80, 0xff80, 0x7f81, 0, 0x8000, 0x0001, 0x7f7f}[(i+k)%7]
					}
				}
				for i := range wide {
					wide[i] = normals(uint32(9+i), n+9)
				}
				return
			}
			run := func(p *Narrow[float32]) ([5]bf16s, [3][]float32, float32) {
				h, f := rows()
				p.SwiGLU(h[0][:n], h[1], h[2])
				p.SwiGLUGrad(h[3][:n], h[4], h[0], h[0], h[1], h[2])
				p.ReLUSquaredGrad(h[0][:n], h[1], h[2])
				p.GeGLU(h[1][:n], h[2], h[3])
				p.GeGLUGrad(h[2][:n], h[3], h[1], h[1], h[2], h[3])
				p.ReLUSquared(h[1][:n], h[4][n:])
				p.Mul(h[2][:n], h[4], f[0])
				p.NormGrad(f[0][:n], h[2], h[3], f[1], 1.3, 0.7)
				p.Normalise(h[3][:n], h[2], f[0], f[1], 0.8)
				p.Rotate(f[1][:n], f[2], h[4], h[4][n:], heads)
				p.RotatePairs(f[1][:n], f[2], h[1], heads)
				sum := p.NormDot(f[2][:n], h[4], h[4][n:], f[1])
				return h, f, sum
			}
			slow := passes(v)
			wantH, wantF, wantSum := run(&slow)
			gotH, gotF, gotSum := run(v.Narrow)
			for i := range wantH {
				for k, want := range wantH[i] {
					if got := gotH[i][k]; got != want {
						t.Fatalf("%v: %d elements: row %d of bfloat16 is %#x at %d, want %#x", tier, n, i, got, k, want)
					}
				}
			}
			for i := range wantF {
				for k, want := range wantF[i] {
					if got := gotF[i][k]; math.Float32bits(got) != math.Float32bits(want) &&
						!(got != got && want != want) {
						t.Fatalf("%v: %d elements: row %d of float32 is %v at %d, want %v", tier, n, i, got, k, want)
					}
				}
			}
			if d := math.Abs(float64(gotSum - wantSum)); d > 1e-4*(1+math.Abs(float64(wantSum))) {
				t.Fatalf("%v: %d elements: NormDot = %v, want %v", tier, n, gotSum, wantSum)
			}
		}
	}
}
