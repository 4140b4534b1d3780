package vec

import (
	"fmt"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// Time per element of rows that lie in the first-level cache, per tier.
func BenchmarkPrimitives(b *testing.B) {
	const n = 1024
	narrow, gate, up := make([]tensor.BFloat16, n), make([]tensor.BFloat16, n), make([]tensor.BFloat16, n)
	signed, unsigned := NewCode[float32](true), NewCode[float32](false)
	m8, v8, top := make([]byte, n), make([]byte, n), make([]float32, n/256)
	half, grid := make([]tensor.Float16, n), &Grid[float32]{Scale: 3, Top: 448, Least: 0x1p-6, Magic: 0x1.8p20}
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		a, x, y, z, w := normals(1, n), normals(2, n), normals(3, n), normals(4, n), normals(5, n)
		for i := range w {
			w[i] *= w[i]
		}
		cos, sin := make([]float32, n), make([]float32, n)
		for i := range cos {
			cos[i], sin[i] = 0.6, 0.8
		}
		v.Pack(gate, x)
		v.Pack(up, y)
		for i := range m8 {
			m8[i], v8[i] = byte(7*i), byte(11*i)
		}
		list := []struct {
			name string
			run  func()
		}{
			{"Add", func() { v.Add(a, x) }},
			{"Mul", func() { v.Mul(a, x, y) }},
			{"Dot", func() { v.Dot(x, y) }},
			{"SumSq", func() { v.SumSq(x) }},
			{"Max", func() { v.Max(x) }},
			{"ExpSum", func() { v.ExpSum(a, x, 1) }},
			{"SwiGLU", func() { v.SwiGLU(a, x, y) }},
			{"SwiGLUGrad", func() { v.SwiGLUGrad(a, z, a, x, y, x) }},
			{"AdamW", func() { v.AdamW(a, x, y, w, adamWOf[float32](0)) }},
			{"Decode", func() { v.Decode(a, m8, signed, 1) }},
			{"Encode", func() { v.Encode(m8, x, signed, 0.2) }},
			{"EncodeUnsigned", func() { v.Encode(v8, w, unsigned, 0.04) }},
			{"Momentum", func() { v.Momentum(a, x, y, &Momentum[float32]{1, 0, 0.9, 1, 0, 1e-3}) }},
			{"Lion", func() { v.Lion(a, x, y, lionOf[float32](0)) }},
			{"AdEMAMix", func() { v.AdEMAMix(a, x, y, z, w, adEMAMixOf[float32](0)) }},
			{"Sophia", func() { v.Sophia(a, x, y, w, &Sophia[float32]{0.9, 0.1, 0.5, 1e-15, 1e-2, 1e-4, 0, 1, -1}) }},
			{"Rotate", func() { v.Rotate(z, w, cos, sin) }},
			{"Mask", func() { v.Mask(a, &Mask[float32]{Keep: 58982, Scale: 1}) }},
			{"Pack", func() { v.Pack(narrow, x) }},
			{"Unpack", func() { v.Unpack(a, narrow) }},
			{"PackF16", func() { v.PackF16(half, x) }},
			{"UnpackF16", func() { v.UnpackF16(a, half) }},
			{"MaxAbs", func() { v.MaxAbs(x) }},
			{"Quantize", func() { v.Quantize(narrow, x, grid) }},
		}
		if v.AdamW8 != nil {
			o := &AdamW8[float32]{*adamWOf[float32](0), signed, unsigned, make([]float32, 512)}
			list = append(list, struct {
				name string
				run  func()
			}{"AdamW8", func() { v.AdamW8(a, x, m8, v8, top, top, o) }})
		}
		if p := v.Narrow; p != nil {
			list = append(list, []struct {
				name string
				run  func()
			}{
				{"NarrowSwiGLU", func() { p.SwiGLU(narrow, gate, up) }},
				{"NarrowSwiGLUGrad", func() { p.SwiGLUGrad(narrow, narrow, narrow, gate, gate, up) }},
				{"NarrowNormalise", func() { p.Normalise(narrow, narrow, x, y, 1.1) }},
				{"NarrowNormDot", func() { p.NormDot(a, gate, up, x) }},
				{"NarrowNormGrad", func() { p.NormGrad(a, gate, up, x, 1e-9, 1) }},
				{"NarrowRotate", func() { p.Rotate(cos[:32], sin, gate, gate[32:], n/64) }},
			}...)
		}
		for _, c := range list {
			b.Run(fmt.Sprintf("%v/%s", tier, c.name), func(b *testing.B) {
				for b.Loop() {
					c.run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/elem")
			})
		}
	}
}
