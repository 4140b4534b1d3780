package main

import "anneal/internal/asmgen"

// elu is dst = elu(x) + 1 = max(x, 0) + e^min(x, 0), whose second term is the slope.
func (s *isa) elu(f *asmgen.File) {
	k := s.kernel(f, "elu1", "is dst = elu(x) + 1 and its slope.", []string{"dst", "slope", "x"}, "", "")
	const zero = 14
	k.useExp()
	k.zero(zero, 1)
	k.loop(2, func(u int) {
		x, e := 5*u, 5*u+1
		k.load("x", u, x)
		k.op("VMINPS", x, zero, e) // x if it is NaN
		k.op("VMAXPS", x, zero, x)
		k.exp(e, e+1, e+2, k.maskFor(u, e+3))
		k.store(e, "slope", u)
		k.op("VADDPS", e, x, x)
		k.store(x, "dst", u)
	})
	k.Ret()
}
