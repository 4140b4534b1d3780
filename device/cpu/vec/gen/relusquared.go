package main

import "anneal/internal/asmgen"

// reluSquared writes max(x, 0)² and its gradient for float32, and with the suffix ":bf16" for storage in bfloat16.
func (s *isa) reluSquared(f *asmgen.File, name, suffix string) {
	const zero = 11
	k := s.kernel(f, name, "is dst = max(x, 0)².", []string{"dst" + suffix, "x" + suffix}, "", "")
	k.useBF16()
	k.zero(zero, 1)
	k.loop(4, func(u int) {
		k.ahead(u, "x")
		k.load("x", u, u)
		k.op("VMAXPS", u, zero, u) // x if it is NaN
		k.op("VMULPS", u, u, u)
		k.roundQuiet(u, "dst")
		k.store(u, "dst", u)
	})
	k.Ret()

	k = s.kernel(f, name+"Grad", "is dx = 2·max(x, 0)·dact.",
		[]string{"dx" + suffix, "dact" + suffix, "x" + suffix}, "", "")
	k.useBF16()
	k.zero(zero, 1)
	k.loop(4, func(u int) {
		k.ahead(u, "dact", "x")
		k.load("x", u, u)
		k.op("VMAXPS", u, zero, u)
		k.op("VADDPS", u, u, u)
		k.load("dact", u, u+4)
		k.op("VMULPS", u+4, u, u)
		k.roundQuiet(u, "dx")
		k.store(u, "dx", u)
	})
	k.Ret()
}
