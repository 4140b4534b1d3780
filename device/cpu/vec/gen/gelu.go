package main

import "anneal/internal/asmgen"

// gelu and geluGrad are written for float32, and with the suffix ":bf16" for storage in bfloat16, by the formulas in
// gelu.go of package vec.
func (s *isa) gelu(f *asmgen.File, name, suffix string) {
	k := s.kernel(f, name, "is dst = gelu(x).", []string{"dst" + suffix, "x" + suffix}, "", "")
	k.useExp()
	k.useBF16()
	k.loop(2, func(u int) {
		x, t, square := 5*u, 5*u+1, 5*u+2
		k.ahead(u, "x")
		k.load("x", u, x)
		k.op("VMULPS", x, x, square)
		k.geluExponent(x, square, t)
		k.exp(t, t+1, t+2, k.maskFor(u, t+3))
		k.with("VADDPS", one, t, t)
		k.op("VDIVPS", t, x, x)
		k.roundQuiet(x, "dst")
		k.store(x, "dst", u)
	})
	k.Ret()
}

func (s *isa) geluGrad(f *asmgen.File, name, suffix string) {
	k := s.kernel(f, name, "is dx = dact·gelu'(x).", []string{"dx" + suffix, "dact" + suffix, "x" + suffix}, "", "")
	k.useExp()
	k.useBF16()
	k.loop(2, func(u int) {
		x, square, t, sigmoid, w := 6*u, 6*u+1, 6*u+2, 6*u+3, 6*u+4
		k.ahead(u, "dact", "x")
		k.load("x", u, x)
		k.clamp(x, geluLow, geluHigh, t)
		k.op("VMULPS", x, x, square)
		k.geluExponent(x, square, t)
		k.exp(t, t+1, t+2, k.maskFor(u, t+3))
		k.with("VADDPS", one, t, w)
		k.fill(one, sigmoid)
		k.op("VDIVPS", w, sigmoid, sigmoid)
		k.op("VMULPS", sigmoid, t, t) // 1 − σ
		k.op("VMULPS", sigmoid, t, t)
		k.fillFar(geluB3, w)
		k.withFar("VFMADD213PS", geluA, square, w)
		k.op("VMULPS", x, t, t)
		k.op("VFMADD213PS", sigmoid, w, t)
		k.load("dact", u, x)
		k.op("VMULPS", x, t, t)
		k.roundQuiet(t, "dx")
		k.store(t, "dx", u)
	})
	k.Ret()
}

// geluExponent sets register t to −x·(A + B·x²).
func (k *kernel) geluExponent(x, square, t int) {
	k.fillFar(geluMinusB, t)
	k.withFar("VFMADD213PS", geluMinusA, square, t)
	k.op("VMULPS", x, t, t)
}
