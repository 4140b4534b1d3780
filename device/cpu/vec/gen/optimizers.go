package main

import "anneal/internal/asmgen"

// adamW reads its ten constants in the order of the fields of vec.AdamW. It takes subnormal numbers for 0, by modes of
// the control register (Go code runs with the default ones): the moments of a token that is not seen decay into them
// and stay there, and each would cost a hundred cycles.
func (s *isa) adamW(f *asmgen.File) {
	k := s.kernel(f, "adamW", "is one step of AdamW.", []string{"p", "g", "m", "v"}, "o *AdamW[float32]", "")
	const scale, beta1, keep1, beta2, keep2, decay, rate, correct2, eps, floor = 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
	k.Arg("o", "R11")
	for i := range 10 {
		k.I("VBROADCASTSS %d(R11), %s", 4*i, k.reg(scale+i))
	}
	k.I("LDMXCSR ·flushSubnormals(SB)")
	k.loop(1, func(u int) {
		const g, m, v, t, p = 0, 1, 2, 3, 4
		k.ahead(u, "p", "g", "m", "v")
		k.load("g", u, g)
		k.op("VMULPS", scale, g, g)
		k.load("m", u, m)
		k.op("VMULPS", beta1, m, m)
		k.op("VFMADD231PS", keep1, g, m)
		k.store(m, "m", u)
		k.op("VMULPS", g, g, g)
		k.load("v", u, v)
		k.op("VMULPS", beta2, v, v)
		k.op("VFMADD231PS", keep2, g, v)
		k.store(v, "v", u)
		k.op("VMULPS", correct2, v, t)
		k.op("VSQRTPS", t, t)
		k.op("VADDPS", eps, t, t)
		k.op("VMULPS", rate, m, m)
		k.op("VDIVPS", t, m, m)
		k.load("p", u, p)
		k.decay(p, m, t, decay, floor)
		k.op("VSUBPS", m, p, p)
		k.store(p, "p", u)
	})
	k.I("LDMXCSR ·keepSubnormals(SB)")
	k.Ret()
}

// decay adds decay·p to the update u in the lanes where u·p ≥ floor; temp is overwritten.
func (k *kernel) decay(p, u, temp, decay, floor int) {
	const atLeast = 0x1d // GE, false for NaN
	k.op("VMULPS", u, p, temp)
	if k.wide() {
		k.I("VCMPPS $%d, %s, %s, K2", atLeast, k.reg(floor), k.reg(temp))
		k.I("VFMADD231PS %s, %s, K2, %s", k.reg(decay), k.reg(p), k.reg(u))
		return
	}
	k.I("VCMPPS $%d, %s, %s, %s", atLeast, k.reg(floor), k.reg(temp), k.reg(temp))
	k.op("VANDPS", p, temp, temp)
	k.op("VFMADD231PS", decay, temp, u)
}
