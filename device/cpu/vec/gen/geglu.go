package main

import "anneal/internal/asmgen"

// geGLU and geGLUGrad are written for float32, and with the suffix ":bf16" for storage in bfloat16, by the formulas in
// geglu.go of package vec.
func (s *isa) geGLU(f *asmgen.File, name, suffix string) {
	k := s.kernel(f, name, "is dst = gelu(gate)·up.", []string{"dst" + suffix, "gate" + suffix, "up" + suffix}, "", "")
	k.useExp()
	k.useBF16()
	k.loop(2, func(u int) {
		x, t, square := 5*u, 5*u+1, 5*u+2
		k.ahead(u, "gate", "up", "dst")
		k.load("gate", u, x)
		k.fillFar(geluLow, t)
		k.op("VMAXPS", x, t, x) // x if it is NaN
		k.op("VMULPS", x, x, square)
		k.geluExponent(x, square, t)
		k.exp(t, t+1, t+2, k.maskFor(u, t+3))
		k.with("VADDPS", one, t, t)
		k.fill(one, square)
		k.op("VDIVPS", t, square, square) // the sigmoid
		k.op("VMULPS", square, x, x)
		k.load("up", u, t)
		k.op("VMULPS", t, x, x)
		k.roundQuiet(x, "dst")
		k.store(x, "dst", u)
	})
	k.Ret()
}

func (s *isa) geGLUGrad(f *asmgen.File, name, suffix string) {
	k := s.kernel(f, name, "is dup = dact·gelu(gate), dgate = dact·up·gelu'(gate), act = gelu(gate)·up.",
		[]string{"dgate" + suffix, "dup" + suffix, "act" + suffix, "dact" + suffix, "gate" + suffix, "up" + suffix}, "",
		"")
	k.useExp()
	k.useBF16()
	k.loop(2, func(u int) {
		v, x, t, square, w, b := 6*u, 6*u+1, 6*u+2, 6*u+3, 6*u+4, 6*u+5
		k.ahead(u, "dact", "gate", "up")
		k.load("gate", u, v)
		k.fillFar(geluLow, t)
		k.op("VMAXPS", v, t, v) // v if it is NaN
		k.fillFar(geluHigh, t)
		k.op("VMINPS", v, t, x)
		k.op("VMULPS", x, x, square)
		k.geluExponent(x, square, t)
		k.exp(t, t+1, t+2, k.maskFor(u, t+3))
		k.with("VADDPS", one, t, square)
		k.fill(one, w)
		k.op("VDIVPS", square, w, w) // the sigmoid
		k.op("VMULPS", w, t, t)      // 1 − σ
		k.op("VMULPS", w, t, t)
		k.op("VMULPS", x, t, t)
		k.op("VMULPS", x, x, square)
		k.fillFar(geluB3, b)
		k.withFar("VFMADD213PS", geluA, square, b)
		k.op("VFMADD213PS", w, b, t) // gelu'
		k.op("VMULPS", w, v, v)      // gelu
		k.load("dact", u, x)
		k.load("up", u, square) // before any store: gradients may overwrite their inputs
		k.op("VMULPS", x, v, w)
		k.roundQuiet(w, "dup")
		k.store(w, "dup", u)
		k.op("VMULPS", square, v, v)
		k.roundQuiet(v, "act")
		k.store(v, "act", u)
		k.op("VMULPS", square, x, x)
		k.op("VMULPS", t, x, x)
		k.roundQuiet(x, "dgate")
		k.store(x, "dgate", u)
	})
	k.Ret()
}
