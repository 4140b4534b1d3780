package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// The rows of vec.lanes, by number.
const (
	expLow = iota
	expHigh
	log2e
	ln2Hi
	ln2Lo
	expC6
	expC5
	expC4
	expC3
	expC2
	one
	signBit
	bias // int32: 127
	constants
)

// firstConstant is where AVX-512 kernels keep the constants; AVX2 has too few registers and reads them from memory.
const firstConstant = 32 - constants

func (k *kernel) loadConstants() {
	if !k.wide() {
		return
	}
	for c := range constants {
		k.I("VBROADCASTSS ·lanes+%d(SB), Z%d", 32*c, firstConstant+c)
	}
}

// constant returns the operand of a constant; it must stand first in the instruction.
func (k *kernel) constant(c int) string {
	if k.wide() {
		return fmt.Sprintf("Z%d", firstConstant+c)
	}
	return fmt.Sprintf("·lanes+%d(SB)", 32*c)
}

// with writes an instruction whose first operand is a constant.
func (k *kernel) with(name string, c, a, dst int) {
	k.I("%s %s, %s, %s", name, k.constant(c), k.reg(a), k.reg(dst))
}

// fill sets register r to a constant.
func (k *kernel) fill(c, r int) { k.I("VMOVUPS %s, %s", k.constant(c), k.reg(r)) }

// exp replaces register x by e^x, as exp.go of package vec explains; n and p are overwritten. mask is an AVX-512 mask
// register, or for AVX2 the vector register, that it may use.
func (k *kernel) exp(x, n, p, mask int) {
	// Not less than, so that NaN passes: lanes below the limit become 0 in the end.
	if k.wide() {
		k.I("VCMPPS $5, %s, %s, K%d", k.constant(expLow), k.reg(x), mask)
	} else {
		k.I("VCMPPS $5, %s, %s, %s", k.constant(expLow), k.reg(x), k.reg(mask))
	}
	k.fill(expHigh, n)
	k.op("VMINPS", x, n, x) // x if it is NaN
	k.with("VMULPS", log2e, x, n)
	if k.wide() {
		k.I("VRNDSCALEPS $8, %[1]s, %[1]s", k.reg(n))
	} else {
		k.I("VROUNDPS $8, %[1]s, %[1]s", k.reg(n))
	}
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
	// 2ⁿ in two steps, since n may be outside the range of exponents. x is free now.
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
	k := s.kernel(f, "expSum", "is dst = exp(x − shift); it returns Σ dst.", []string{"dst", "x"}, "shift float32", "float32")
	const shift = 14
	k.loadConstants()
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

	k = s.kernel(f, "swiGLU", "is dst = silu(gate)·up.", []string{"dst", "gate", "up"}, "", "")
	k.loadConstants()
	k.loop(2, func(u int) {
		g, x := 5*u, 5*u+1
		k.load("gate", u, g)
		k.with("VXORPS", signBit, g, x)
		k.exp(x, x+1, x+2, k.maskFor(u, x+3))
		k.with("VADDPS", one, x, x)
		k.op("VDIVPS", x, g, g)
		k.load("up", u, x)
		k.op("VMULPS", x, g, g)
		k.store(g, "dst", u)
	})
	k.Ret()

	k = s.kernel(f, "swiGLUGrad", "is dup = dact·silu(gate), dgate = dact·up·silu'(gate).",
		[]string{"dgate", "dup", "dact", "gate", "up"}, "", "")
	k.loadConstants()
	k.loop(2, func(u int) {
		g, x, d, s := 5*u, 5*u+1, 5*u+2, 5*u+3
		k.load("gate", u, g)
		k.with("VXORPS", signBit, g, x)
		k.exp(x, x+1, x+2, k.maskFor(u, x+3))
		k.with("VADDPS", one, x, x)
		k.fill(one, s)
		k.op("VDIVPS", x, s, s) // the sigmoid
		k.op("VMULPS", s, g, g) // silu
		k.load("dact", u, d)
		k.op("VMULPS", d, g, x)
		k.store(x, "dup", u)
		k.load("up", u, x)
		k.op("VMULPS", x, d, d)
		k.op("VADDPS", g, s, x) // s + silu − silu·s = s·(1 + gate·(1 − s))
		k.op("VFNMADD231PS", g, s, x)
		k.op("VMULPS", x, d, d)
		k.store(d, "dgate", u)
	})
	k.Ret()
}

// maskFor returns what exp may use as its mask for vector u: K2 or K3, or register r.
func (k *kernel) maskFor(u, r int) int {
	if k.wide() {
		return 2 + u
	}
	return r
}
