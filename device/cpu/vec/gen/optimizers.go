package main

import "anneal/internal/asmgen"

// Steps of optimizers treat subnormal numbers as 0, by modes of the control register (Go code runs with the default
// modes). The moments of unused tokens decay to subnormal numbers and stay there, and each would cost a hundred
// cycles.

// An update is the kernel of a step with its constants, the fields of its struct in order.
type update struct {
	*kernel
	first int // register of the first constant; 0 if they stay in memory
}

// update starts the step of an optimizer with n constants of type typ.
func (s *isa) update(f *asmgen.File, name, doc, typ string, slices []string, n int, result string) *update {
	k := &update{s.kernel(f, name, doc, slices, "o *"+typ+"[float32]", result), 16 - n - 1}
	k.Arg("o", k.structure())
	switch {
	case k.neon():
		k.first = neonQuiet - n
	case k.wide():
		k.first = 32 - n
	case k.first < 5:
		k.first = 0
	}
	for i := range n {
		switch {
		case k.neon():
			k.VLoad(k.first+i, 4, 4*i, neonStruct)
			k.VSplat(k.first+i, k.first+i, 0)
		case k.first > 0:
			k.I("VBROADCASTSS %d(R11), %s", 4*i, k.reg(k.first+i))
		}
	}
	k.flush(true)
	return k
}

// structure returns the register with the address of a kernel's struct of constants.
func (k *kernel) structure() string {
	if k.neon() {
		return neonStruct
	}
	return "R11"
}

// c returns the register of constant i: its own, or one that is loaded for the next instruction only.
func (k *update) c(i int) int {
	const once = 14
	if k.first > 0 {
		return k.first + i
	}
	k.I("VBROADCASTSS %d(R11), %s", 4*i, k.reg(once))
	return once
}

func (k *update) end() {
	k.flush(false)
	k.Ret()
}

// mean computes m ← beta·m + keep·x for the running mean m in slice, and keeps it in its register.
func (k *update) mean(m, x, beta, keep int, slice string, u int) {
	k.load(slice, u, m)
	k.op("VMULPS", k.c(beta), m, m)
	k.op("VFMADD231PS", k.c(keep), x, m)
	k.store(m, slice, u)
}

// descend subtracts the update x from parameter p, with its decay.
func (k *update) descend(p, x, temp, decay, floor, u int) {
	const atLeast = 0x1d // GE, false for NaN
	k.op("VMULPS", x, p, temp)
	if k.neon() {
		k.V("fcmge", temp, temp, k.c(floor))
		k.V("and", temp, temp, p)
		k.V("fmla", x, temp, k.c(decay))
	} else if k.wide() {
		k.I("VCMPPS $%d, %s, %s, K2", atLeast, k.reg(k.c(floor)), k.reg(temp))
		k.I("VFMADD231PS %s, %s, K2, %s", k.reg(k.c(decay)), k.reg(p), k.reg(x))
	} else {
		k.I("VCMPPS $%d, %s, %s, %s", atLeast, k.reg(k.c(floor)), k.reg(temp), k.reg(temp))
		k.op("VANDPS", p, temp, temp)
		k.op("VFMADD231PS", k.c(decay), temp, x)
	}
	k.op("VSUBPS", x, p, p)
	k.store(p, "p", u)
}

func (s *isa) optimizers(f *asmgen.File) {
	s.adam(f, "adamW", "is one step of AdamW.", false)
	s.adam(f, "adam", "is one step of Adam with the decay in the gradient.", true)
	s.momentum(f)
	s.lion(f)
	s.adEMAMix(f)
	s.descend(f)
	s.whiten(f)
	s.sophia(f)
	s.meanSquare(f)
}

func (s *isa) adam(f *asmgen.File, name, doc string, coupled bool) {
	const scale, beta1, keep1, beta2, keep2, decay, rate, correct2, eps, floor = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	k := s.update(f, name, doc, "AdamW", []string{"p", "g", "m", "v"}, 10, "")
	k.loop(1, func(u int) {
		const g, m, v, t, p = 0, 1, 2, 3, 4
		k.ahead(u, "p", "g", "m", "v")
		k.load("g", u, g)
		k.op("VMULPS", k.c(scale), g, g)
		k.load("p", u, p)
		if coupled {
			k.op("VFMADD231PS", k.c(decay), p, g)
		}
		k.mean(m, g, beta1, keep1, "m", u)
		k.op("VMULPS", g, g, g)
		k.mean(v, g, beta2, keep2, "v", u)
		k.op("VMULPS", k.c(correct2), v, t)
		k.op("VSQRTPS", t, t)
		k.op("VADDPS", k.c(eps), t, t)
		k.op("VMULPS", k.c(rate), m, m)
		k.op("VDIVPS", t, m, m)
		if coupled {
			k.op("VSUBPS", m, p, p)
			k.store(p, "p", u)
			return
		}
		k.descend(p, m, t, decay, floor, u)
	})
	k.end()
}

func (s *isa) momentum(f *asmgen.File) {
	const scale, decay, beta, keep, rateG, rateM = 0, 1, 2, 3, 4, 5
	k := s.update(f, "momentum", "is one step of SGD with momentum.", "Momentum", []string{"p", "g", "m"}, 6, "")
	k.loop(1, func(u int) {
		const g, m, p = 0, 1, 2
		k.ahead(u, "p", "g", "m")
		k.load("g", u, g)
		k.op("VMULPS", k.c(scale), g, g)
		k.load("p", u, p)
		k.op("VFMADD231PS", k.c(decay), p, g)
		k.mean(m, g, beta, keep, "m", u)
		k.op("VMULPS", k.c(rateG), g, g)
		k.op("VFMADD231PS", k.c(rateM), m, g)
		k.op("VSUBPS", g, p, p)
		k.store(p, "p", u)
	})
	k.end()
}

// If c is 0 or NaN the result is 0, otherwise ±1: rate takes the sign bit of c.
func (s *isa) lion(f *asmgen.File) {
	const scale, beta1, keep1, beta2, keep2, decay, rate, floor = 0, 1, 2, 3, 4, 5, 6, 7
	const differs = 0x0c // NEQ, false for NaN
	k := s.update(f, "lion", "is one step of Lion.", "Lion", []string{"p", "g", "m"}, 8, "")
	const zero, sign = 5, 6
	k.zero(zero, 1)
	k.fillFar(signBit, sign)
	k.loop(1, func(u int) {
		const g, m, x, t, p = 0, 1, 2, 3, 4
		k.ahead(u, "p", "g", "m")
		k.load("g", u, g)
		k.op("VMULPS", k.c(scale), g, g)
		k.load("m", u, m)
		k.op("VMULPS", k.c(beta1), m, x)
		k.op("VFMADD231PS", k.c(keep1), g, x)
		k.op("VMULPS", k.c(beta2), m, m)
		k.op("VFMADD231PS", k.c(keep2), g, m)
		k.store(m, "m", u)
		k.op("VANDPS", sign, x, t)
		k.op("VORPS", k.c(rate), t, t)
		if k.neon() { // where |x| > 0, which does not hold for NaN
			k.V("fabs", g, x)
			k.V("fcmgt", g, g, zero)
			k.V("bit", x, t, g)
		} else if k.wide() {
			k.I("VCMPPS $%d, %s, %s, K2", differs, k.reg(zero), k.reg(x))
			k.I("VMOVAPS %s, K2, %s", k.reg(t), k.reg(x))
		} else {
			k.I("VCMPPS $%d, %s, %s, %s", differs, k.reg(zero), k.reg(x), k.reg(g))
			k.op("VBLENDVPS", g, t, x, x)
		}
		k.load("p", u, p)
		k.descend(p, x, t, decay, floor, u)
	})
	k.end()
}

func (s *isa) adEMAMix(f *asmgen.File) {
	const scale, beta1, keep1, beta2, keep2, beta3, keep3, rate1, rate2, correct2, eps, decay, floor = 0, 1, 2, 3, 4, 5,
		6, 7, 8, 9, 10, 11, 12
	k := s.update(f, "adEMAMix", "is one step of AdEMAMix.", "AdEMAMix", []string{"p", "g", "m1", "m2", "v"}, 13, "")
	k.loop(1, func(u int) {
		const g, m1, m2, v, p = 0, 1, 2, 3, 4
		k.ahead(u, "p", "g", "m1", "m2", "v")
		k.load("g", u, g)
		k.op("VMULPS", k.c(scale), g, g)
		k.mean(m1, g, beta1, keep1, "m1", u)
		k.mean(m2, g, beta3, keep3, "m2", u)
		k.op("VMULPS", g, g, g)
		k.mean(v, g, beta2, keep2, "v", u)
		k.op("VMULPS", k.c(correct2), v, v)
		k.op("VSQRTPS", v, v)
		k.op("VADDPS", k.c(eps), v, v)
		k.op("VMULPS", k.c(rate1), m1, m1)
		k.op("VFMADD231PS", k.c(rate2), m2, m1)
		k.op("VDIVPS", v, m1, m1)
		k.load("p", u, p)
		k.descend(p, m1, v, decay, floor, u)
	})
	k.end()
}

func (s *isa) descend(f *asmgen.File) {
	const rate, decay, floor = 0, 1, 2
	k := s.update(f, "descend", "subtracts a scaled update and the decay from a parameter.", "Descend",
		[]string{"p", "u"}, 3, "")
	k.loop(2, func(u int) {
		p, x, t := 3*u, 3*u+1, 3*u+2
		k.ahead(u, "p", "u")
		k.load("u", u, x)
		k.op("VMULPS", k.c(rate), x, x)
		k.load("p", u, p)
		k.descend(p, x, t, decay, floor, u)
	})
	k.end()
}

func (s *isa) whiten(f *asmgen.File) {
	const scale, beta, keep, eps = 0, 1, 2, 3
	k := s.update(f, "whiten", "divides a gradient by the root of its running mean square.", "Whiten",
		[]string{"u", "g", "v"}, 4, "")
	k.loop(1, func(u int) {
		const g, v, t = 0, 1, 2
		k.ahead(u, "g", "v")
		k.load("g", u, g)
		k.op("VMULPS", k.c(scale), g, g)
		k.op("VMULPS", g, g, t)
		k.op("VADDPS", k.c(eps), t, t)
		k.mean(v, t, beta, keep, "v", u)
		k.op("VSQRTPS", v, v)
		k.op("VDIVPS", v, g, g)
		k.store(g, "u", u)
	})
	k.end()
}

func (s *isa) sophia(f *asmgen.File) {
	const inside, p, m, h, t = 0, 1, 2, 3, 4
	const beta, keep, rho, tiny, rate, decay, floor, one, minusOne = 0, 1, 2, 3, 4, 5, 6, 7, 8
	k := s.update(f, "sophia", "is one step of Sophia; it returns the number of elements that were not clipped.",
		"Sophia", []string{"p", "g", "m", "h"}, 9, "float32")
	k.zero(inside, 1)
	k.loop(1, func(u int) {
		k.ahead(u, "p", "g", "m", "h")
		k.load("g", u, t)
		k.load("m", u, m)
		k.op("VMULPS", k.c(beta), m, m)
		k.op("VFMADD231PS", k.c(keep), t, m)
		k.store(m, "m", u)
		k.load("h", u, h)
		k.op("VMULPS", k.c(rho), h, h)
		k.op("VADDPS", k.c(tiny), h, h)
		k.op("VDIVPS", h, m, m)
		k.op("VMINPS", k.c(one), m, m)
		k.op("VMAXPS", k.c(minusOne), m, m)
		k.op("VMULPS", m, m, t)
		k.lanesBelow(k.c(one), t, h)
		k.keep(t)
		k.op("VADDPS", t, inside, inside)
		k.op("VMULPS", k.c(rate), m, m)
		k.load("p", u, p)
		k.descend(p, m, t, decay, floor, u)
	})
	k.flush(false)
	k.across("VADD", "PS", inside) // overwrites p
	k.ret("SS", inside)
}

func (s *isa) meanSquare(f *asmgen.File) {
	k := s.kernel(f, "meanSquare", "is h ← beta·h + weight·g².", []string{"h", "g"}, "beta float32, weight float32", "")
	k.broadcast("beta", 12)
	k.broadcast("weight", 13)
	k.loop(2, func(u int) {
		k.load("g", u, u)
		k.op("VMULPS", u, u, u)
		k.op("VMULPS", 13, u, u)
		k.load("h", u, u+2)
		k.op("VFMADD231PS", 12, u+2, u)
		k.store(u, "h", u)
	})
	k.Ret()
}

// lanesBelow sets x to one in the lanes where x is below one, and to 0 in the others; temp is overwritten.
func (k *kernel) lanesBelow(one, x, temp int) {
	const below = 0x11 // LT, false for NaN
	if k.neon() {
		k.V("fcmgt", temp, one, x)
		k.V("and", x, temp, one)
		return
	}
	if k.wide() {
		k.I("VCMPPS $%d, %s, %s, K2", below, k.reg(one), k.reg(x))
		k.I("VMOVAPS.Z %s, K2, %s", k.reg(one), k.reg(x))
		return
	}
	k.I("VCMPPS $%d, %s, %s, %s", below, k.reg(one), k.reg(x), k.reg(temp))
	k.op("VANDPS", one, temp, x)
}
