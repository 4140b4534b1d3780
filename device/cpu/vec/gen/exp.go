package main

import "anneal/internal/asmgen"

// exp replaces register x by e^x, by the formula in exp.go of package vec; n and p are overwritten. mask is a scratch
// mask register for AVX-512, or a scratch vector register for AVX2.
func (k *kernel) exp(x, n, p, mask int) {
	if k.neon() {
		k.neonExp(x, n, p, mask)
		return
	}
	// "Not less than" lets NaN pass. Lanes below the limit become 0 at the end.
	if k.wide() {
		k.I("VCMPPS $5, %s, %s, K%d", k.constant(expLow), k.reg(x), mask)
	} else {
		k.I("VCMPPS $5, %s, %s, %s", k.constant(expLow), k.reg(x), k.reg(mask))
	}
	k.fill(expHigh, n)
	k.op("VMINPS", x, n, x) // x if it is NaN
	k.fill(roundMagic, n)
	k.with("VFMADD231PS", log2e, x, n)
	k.with("VSUBPS", roundMagic, n, n)
	k.with("VFNMADD231PS", ln2Hi, n, x)
	k.with("VFNMADD231PS", ln2Lo, n, x)
	k.fill(expC6, p)
	for _, c := range []int{expC5, expC4, expC3, expC2, one, one} {
		k.with("VFMADD213PS", c, x, p)
	}
	if k.wide() {
		k.I("VSCALEFPS.Z %s, %s, K%d, %s", k.reg(n), k.reg(p), mask, k.reg(x))
		return
	}
	// 2ⁿ in two steps, because n may be outside the range of exponents. x is free now.
	k.I("VCVTPS2DQ %[1]s, %[1]s", k.reg(n))
	k.I("VPSRAD $1, %s, %s", k.reg(n), k.reg(x))
	k.op("VPSUBD", x, n, n)
	for _, r := range []int{x, n} {
		k.with("VPADDD", bias, r, r)
		k.I("VPSLLD $23, %[1]s, %[1]s", k.reg(r))
		k.op("VMULPS", r, p, p)
	}
	k.op("VANDPS", mask, p, x)
}

func (s *isa) exponentials(f *asmgen.File) {
	k := s.kernel(f, "expSum", "is dst = exp(x − shift); it returns Σ dst.", []string{"dst", "x"},
		"shift float32", "float32")
	const shift = 14
	k.useExp()
	k.broadcast("shift", shift)
	k.zero(0, 2)
	k.loop(2, func(u int) {
		x := 2 + 4*u
		k.load("x", u, x)
		k.op("VSUBPS", shift, x, x)
		k.exp(x, x+1, x+2, k.maskFor(u, x+3))
		k.keep(x)
		k.op("VADDPS", x, u, u)
		k.store(x, "dst", u)
	})
	k.fold("VADDPS", 0, 2)
	k.across("VADD", "PS", 0)
	k.ret("SS", 0)

	s.swiGLU(f, "swiGLU", "")
	s.swiGLUGrad(f, "swiGLUGrad", "")
}

// swiGLU and swiGLUGrad are written for float32, and with the suffix ":bf16" for storage in bfloat16.
func (s *isa) swiGLU(f *asmgen.File, name, suffix string) {
	k := s.kernel(f, name, "is dst = silu(gate)·up.", []string{"dst" + suffix, "gate" + suffix, "up" + suffix}, "", "")
	k.useExp()
	k.useBF16()
	k.loop(2, func(u int) {
		g, x, s := 5*u, 5*u+1, 5*u+4
		k.ahead(u, "gate", "up", "dst")
		k.load("gate", u, g)
		k.with("VXORPS", signBit, g, x)
		k.exp(x, x+1, x+2, k.maskFor(u, x+3))
		k.with("VADDPS", one, x, x)
		k.fill(one, s)
		k.op("VDIVPS", x, s, s) // the sigmoid
		k.op("VMULPS", s, g, g)
		k.load("up", u, x)
		k.op("VMULPS", x, g, g)
		k.roundQuiet(g, "dst")
		k.store(g, "dst", u)
	})
	k.Ret()
}

func (s *isa) swiGLUGrad(f *asmgen.File, name, suffix string) {
	k := s.kernel(f, name, "is dup = dact·silu(gate), dgate = dact·up·silu'(gate), act = silu(gate)·up.",
		[]string{"dgate" + suffix, "dup" + suffix, "act" + suffix, "dact" + suffix, "gate" + suffix, "up" + suffix}, "",
		"")
	k.useExp()
	k.useBF16()
	k.loop(2, func(u int) {
		g, x, d, s, w := 6*u, 6*u+1, 6*u+2, 6*u+3, 6*u+4
		k.ahead(u, "dact", "gate", "up")
		k.load("gate", u, g)
		k.with("VXORPS", signBit, g, x)
		k.exp(x, x+1, x+2, k.maskFor(u, x+3))
		k.with("VADDPS", one, x, x)
		k.fill(one, s)
		k.op("VDIVPS", x, s, s) // the sigmoid
		k.op("VMULPS", s, g, g) // silu
		k.load("dact", u, d)
		k.load("up", u, w) // before any store: gradients may overwrite their inputs
		k.op("VMULPS", d, g, x)
		k.roundQuiet(x, "dup")
		k.store(x, "dup", u)
		k.op("VMULPS", w, g, x)
		k.roundQuiet(x, "act")
		k.store(x, "act", u)
		k.op("VMULPS", w, d, d)
		k.fill(one, x) // s·(1 + gate·(1 − s)) = s + silu·(1 − s)
		k.op("VSUBPS", s, x, x)
		k.op("VFMADD213PS", s, g, x)
		k.op("VMULPS", x, d, d)
		k.roundQuiet(d, "dgate")
		k.store(d, "dgate", u)
	})
	k.Ret()
}

// maskFor returns a scratch mask of exp for vector u: K2 or K3, or register r.
func (k *kernel) maskFor(u, r int) int {
	if k.wide() {
		return 2 + u
	}
	return r
}
