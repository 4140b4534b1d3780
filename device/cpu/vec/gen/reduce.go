package main

import "anneal/internal/asmgen"

// Sums use four registers, so that four additions are in flight at a time.
func (s *isa) reductions(f *asmgen.File) {
	k := s.kernel(f, "dot", "returns Σ a·b.", []string{"a", "b"}, "", "float32")
	k.zero(0, 4)
	k.loop(4, func(u int) {
		k.ahead(u, "a")
		k.load("a", u, u+4)
		k.load("b", u, u+8)
		k.op("VFMADD231PS", u+4, u+8, u)
	})
	k.fold("VADDPS", 0, 4)
	k.across("VADD", "PS", 0)
	k.ret("SS", 0)

	k = s.kernel(f, "maximum", "returns the largest element, −Inf for none.", []string{"x"}, "", "float32")
	const minusInf = 8
	k.integer(0xff800000, minusInf)
	for r := range 4 {
		k.op("VMOVAPS", minusInf, r)
	}
	k.loop(4, func(u int) {
		k.ahead(u, "x")
		k.load("x", u, u+4)
		switch {
		case !k.tail:
		case k.neon():
			k.VCopy(u+5, minusInf)
			k.VInsert(u+5, 0, u+4, 0)
			k.VCopy(u+4, u+5)
		case k.wide():
			k.I("VBLENDMPS %s, %s, K1, %s", k.reg(u+4), k.reg(minusInf), k.reg(u+4))
		default:
			k.I("VBLENDVPS Y%d, %s, %s, %s", tailMask, k.reg(u+4), k.reg(minusInf), k.reg(u+4))
		}
		k.op("VMAXPS", u+4, u, u)
	})
	k.fold("VMAXPS", 0, 4)
	k.across("VMAX", "PS", 0)
	k.ret("SS", 0)

	s.sum64(f, "sum", "returns Σ x.", func(k *kernel, x, sum int) { k.op("VADDPD", x, sum, sum) })
	s.sum64(f, "sumSq", "returns Σ x².", func(k *kernel, x, sum int) { k.op("VFMADD231PD", x, x, sum) })
}

// sum64 writes a sum in float64: each vector is widened half by half.
func (s *isa) sum64(f *asmgen.File, name, doc string, accumulate func(k *kernel, x, sum int)) {
	k := s.kernel(f, name, doc, []string{"x"}, "", "float64")
	extract := "VEXTRACTF128"
	if k.wide() {
		extract = "VEXTRACTF64X4"
	}
	k.zero(0, 4)
	k.loop(2, func(u int) {
		lower, upper := 4+2*u, 5+2*u
		k.ahead(u, "x")
		k.load("x", u, lower)
		if k.neon() {
			k.V("fcvtl2.2d", upper, lower)
			k.V("fcvtl.2d", lower, lower)
		} else {
			k.I("%s $1, %s, %s", extract, k.reg(lower), k.low(upper))
			k.I("VCVTPS2PD %s, %s", k.low(lower), k.reg(lower))
			k.I("VCVTPS2PD %s, %s", k.low(upper), k.reg(upper))
		}
		accumulate(k, lower, 2*u)
		accumulate(k, upper, 2*u+1)
	})
	k.fold("VADDPD", 0, 4)
	k.across("VADD", "PD", 0)
	k.ret("SD", 0)
}
