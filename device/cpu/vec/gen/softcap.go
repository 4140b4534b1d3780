package main

import "anneal/internal/asmgen"

// softcap is dst = c·tanh(x/c), by the formula in tanh.go of package vec.
func (s *isa) softcap(f *asmgen.File) {
	k := s.kernel(f, "softcap", "is dst = c·tanh(x/c).", []string{"dst", "x"}, "c float32", "")
	const cap, inverse = 14, 13
	k.broadcast("c", cap)
	k.fillFar(one, inverse)
	k.op("VDIVPS", cap, inverse, inverse)
	k.loop(2, func(u int) {
		x, square, p, q := 4*u, 4*u+1, 4*u+2, 4*u+3
		k.ahead(u, "x")
		k.load("x", u, x)
		k.op("VMULPS", inverse, x, x)
		k.clamp(x, tanhLow, tanhHigh, p)
		k.op("VMULPS", x, x, square)
		k.fillFar(tanhP4, p)
		for _, c := range []int{tanhP3, tanhP2, tanhP1, tanhP0} {
			k.withFar("VFMADD213PS", c, square, p)
		}
		k.fillFar(tanhQ4, q)
		for _, c := range []int{tanhQ3, tanhQ2, tanhQ1, one} {
			k.withFar("VFMADD213PS", c, square, q)
		}
		k.op("VMULPS", p, x, x)
		k.op("VDIVPS", q, x, x)
		k.clamp(x, minusOne, one, p)
		k.op("VMULPS", cap, x, x)
		k.store(x, "dst", u)
	})
	k.Ret()
}

// clamp limits register x to two constants; t is overwritten. NaN passes through.
func (k *kernel) clamp(x, low, high, t int) {
	k.fillFar(high, t)
	k.op("VMINPS", x, t, x) // x if it is NaN
	k.fillFar(low, t)
	k.op("VMAXPS", x, t, x)
}
