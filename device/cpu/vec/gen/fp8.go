package main

import "anneal/internal/asmgen"

// fp8 writes the primitives of FP8: the largest magnitude of a row, and rounding to the grid of a format.
func (s *isa) fp8(f *asmgen.File) {
	// Magnitudes are compared as integers, so NaN is the largest.
	k := s.kernel(f, "maxAbs", "returns the largest magnitude, NaN if there is one, 0 for no elements.", []string{"x"},
		"", "float32")
	const magnitude = 8
	k.fillFar(magnitudeBits, magnitude)
	k.zero(0, 4)
	k.loop(4, func(u int) {
		k.ahead(u, "x")
		k.load("x", u, u+4)
		k.op("VANDPS", magnitude, u+4, u+4)
		k.op("VPMAXUD", u+4, u, u)
	})
	k.fold("VPMAXUD", 0, 4)
	k.across("VPMAXU", "D", 0)
	k.ret("SS", 0)

	limit := ""
	if s.name == "AVX2" {
		limit = " Elements past a multiple of 8 are skipped."
	}
	k = s.kernel(f, "quantize", "rounds src to an FP8 grid."+limit, []string{"dst:bf16", "src"},
		"grid *Grid[float32]", "")
	const scale, top, bottom, least, magic, exponent, sign = 5, 6, 7, 8, 9, 10, 11
	k.useBF16()
	k.Arg("grid", k.structure())
	for i, r := range []int{scale, top, least, magic} {
		if k.neon() {
			k.VLoad(r, 4, 4*i, neonStruct)
			k.VSplat(r, r, 0)
			continue
		}
		k.I("VBROADCASTSS %d(R11), %s", 4*i, k.reg(r))
	}
	k.fillFar(signBit, sign)
	k.fillFar(exponentBits, exponent)
	k.op("VXORPS", sign, top, bottom)
	k.loop(2, func(u int) {
		y, r, t := u, 2+u, 4
		k.ahead(u, "src")
		k.load("src", u, y)
		k.op("VMULPS", scale, y, y)
		k.op("VMINPS", y, top, r) // if one operand is NaN, the result is the first operand here
		k.op("VMAXPS", r, bottom, r)
		k.op("VANDPS", exponent, r, t)
		k.op("VMAXPS", t, least, t)
		k.op("VMULPS", magic, t, t)
		k.op("VADDPS", t, r, r)
		k.op("VSUBPS", t, r, r)
		k.op("VSUBPS", y, y, t) // 0, or NaN where y is not finite
		k.op("VADDPS", t, r, r)
		k.op("VANDPS", sign, y, y)
		k.op("VORPS", y, r, r)
		k.store(r, "dst", u)
	})
	k.Ret()
}
