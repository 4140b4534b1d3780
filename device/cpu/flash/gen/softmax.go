package main

import "anneal/internal/asmgen"

// exp2 replaces register x by 2^x for x < 127: 2ⁿ · p(x − n) with n the nearest integer and p of degree 6, within 1.2e-7
// relative; 0 below 2^−126. NaN stays NaN. n and p are overwritten; mask is the number of an AVX-512 mask register or of an
// AVX2 vector register to use.
func (k *kernel) exp2(x, n, p, mask int) {
	if k.wide() {
		k.I("VCMPPS $5, %s, %s, K%d", k.constant(lowest), k.v(x), mask) // not less than: true for NaN
		k.I("VRNDSCALEPS $8, %s, %s", k.v(x), k.v(n))
	} else {
		k.I("VCMPPS $5, %s, %s, %s", k.constant(lowest), k.v(x), k.v(mask))
		k.I("VROUNDPS $8, %s, %s", k.v(x), k.v(n))
	}
	k.op("VSUBPS", n, x, x)
	k.I("VMOVUPS %s, %s", k.constant(c6), k.v(p))
	for c := c5; c <= c0; c++ {
		k.with("VFMADD213PS", c, x, p)
	}
	if k.wide() {
		k.I("VSCALEFPS.Z %s, %s, K%d, %s", k.v(n), k.v(p), mask, k.v(x))
		return
	}
	k.op("VCVTPS2DQ", n, n)
	k.with("VPADDD", bias, n, n)
	k.I("VPSLLD $23, %[1]s, %[1]s", k.v(n))
	k.op("VMULPS", n, p, p)
	k.op("VANDPS", mask, p, x)
}

// maskFor returns the mask that exp2 may use for vector u of a row.
func (k *kernel) maskFor(u, r int) int {
	if k.wide() {
		return 1 + u
	}
	return r
}

func (s *set) softmax(f *asmgen.File) {
	k := s.kernel(f, "softmax", "is kernels.softmax; rows is positive.", "s *float32, rows int, m, l, alpha *float32")
	const top, other, sum, x = 0, 2, 4, 6 // the first two registers hold maxima, then sums
	row := 2 * s.bytes()
	k.loadConstants(lowest, c0)
	k.Arg("s", "SI")
	k.Arg("rows", "CX")
	k.Arg("m", "R8")
	k.Arg("l", "R9")
	k.Arg("alpha", "R10")
	for u := range 2 {
		k.loadTo(top+u, u*s.bytes(), "R8")
		k.op("VMOVAPS", top+u, other+u)
	}

	k.Comment("Maxima down the columns, two rows at a time.")
	single, merged := k.NewLabel("single"), k.NewLabel("merged")
	k.I("MOVQ CX, AX")
	k.I("SHRQ $1, AX")
	k.I("JZ %s", single)
	k.repeat("AX", func() {
		for u := range 4 {
			k.I("VMAXPS %d(SI), %[2]s, %[2]s", u*s.bytes(), k.v(top+u))
		}
		k.I("ADDQ $%d, SI", 2*row)
	})
	k.Label(single)
	k.I("TESTQ $1, CX")
	k.I("JZ %s", merged)
	for u := range 2 {
		k.I("VMAXPS %d(SI), %[2]s, %[2]s", u*s.bytes(), k.v(top+u))
	}
	k.Label(merged)
	for u := range 2 {
		k.op("VMAXPS", other+u, top+u, top+u)
	}

	k.Comment("Rescale what was summed under the old maxima.")
	for u := range 2 {
		a := x + 4*u
		k.loadTo(a, u*s.bytes(), "R8")
		k.op("VSUBPS", top+u, a, a)
		k.exp2(a, a+1, a+2, k.maskFor(u, a+3))
		k.storeTo(a, u*s.bytes(), "R10")
		k.storeTo(top+u, u*s.bytes(), "R8")
		k.I("VMULPS %d(R9), %s, %s", u*s.bytes(), k.v(a), k.v(sum+u))
	}

	k.Comment("Powers and their sums.")
	k.Arg("s", "SI")
	k.repeat("CX", func() {
		for u := range 2 {
			a := x + 4*u
			k.loadTo(a, u*s.bytes(), "SI")
			k.op("VSUBPS", top+u, a, a)
			k.exp2(a, a+1, a+2, k.maskFor(u, a+3))
			k.storeTo(a, u*s.bytes(), "SI")
			k.op("VADDPS", a, sum+u, sum+u)
		}
		k.I("ADDQ $%d, SI", row)
	})
	for u := range 2 {
		k.storeTo(sum+u, u*s.bytes(), "R9")
	}
	k.Ret()
}

func (s *set) grad(f *asmgen.File) {
	k := s.kernel(f, "grad", "is kernels.grad; rows is positive.", "s, dp *float32, ld, rows int, lse, delta *float32")
	const lse, delta, x = 0, 2, 4
	k.loadConstants(lowest, c0)
	k.Arg("s", "SI")
	k.Arg("dp", "DI")
	k.argBytes("ld", "DX")
	k.Arg("rows", "CX")
	k.Arg("lse", "R8")
	k.Arg("delta", "R9")
	for u := range 2 {
		k.loadTo(lse+u, u*s.bytes(), "R8")
		k.loadTo(delta+u, u*s.bytes(), "R9")
	}
	k.repeat("CX", func() {
		for u := range 2 {
			a := x + 4*u
			k.loadTo(a, u*s.bytes(), "SI")
			k.op("VSUBPS", lse+u, a, a)
			k.exp2(a, a+1, a+2, k.maskFor(u, a+3))
			k.storeTo(a, u*s.bytes(), "SI")
			k.loadTo(a+1, u*s.bytes(), "DI")
			k.op("VSUBPS", delta+u, a+1, a+1)
			k.op("VMULPS", a, a+1, a+1)
			k.storeTo(a+1, u*s.bytes(), "DI")
		}
		k.I("ADDQ DX, SI")
		k.I("ADDQ DX, DI")
	})
	k.Ret()
}
