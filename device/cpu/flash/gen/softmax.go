package main

import "anneal/internal/asmgen"

// exp2 replaces register x by 2^x for x < 127: 2ⁿ · p(x − n) with n the nearest integer and p of degree 6, within
// 1.2e-7 relative; 0 below 2^−126. NaN stays NaN. n and p are overwritten; mask is the number of a scratch AVX-512
// mask register or AVX2 vector register.
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

// maskFor returns the scratch mask of exp2 for vector u of a row.
func (k *kernel) maskFor(u, r int) int {
	if k.wide() {
		return 1 + u
	}
	return r
}

func (s *set) softmax(f *asmgen.File) {
	k := s.kernel(f, "softmax", "is kernels.softmax; scale is the bits of a float32; rows is positive"+s.whole()+".",
		"s *float32, rows, scale int, m, l, alpha *float32")
	const top, other, sum, x, temp, scale = 0, 2, 4, 6, 10, 14
	row := 2 * s.bytes()
	k.loadConstants(lowest, c0)
	k.loadOrder()
	k.argScale(scale)
	k.Arg("s", "SI")
	k.Arg("rows", "CX")
	k.Arg("m", "R8")
	k.Arg("l", "R9")
	k.Arg("alpha", "R10")
	for u := range 2 {
		k.loadTo(top+u, u*s.bytes(), "SI")
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
		k.op("VMULPS", scale, top+u, top+u)
		k.I("VMAXPS %d(R8), %[2]s, %[2]s", u*s.bytes(), k.v(top+u))
	}

	k.Comment("Rescale the earlier sums to the new maxima.")
	for u := range 2 {
		k.loadTo(x+u, u*s.bytes(), "R8")
		k.op("VSUBPS", top+u, x+u, x+u)
		k.exp2(x+u, temp+2*u, temp+2*u+1, k.maskFor(u, x+2+u))
		k.storeTo(x+u, u*s.bytes(), "R10")
		k.storeTo(top+u, u*s.bytes(), "R8")
		k.I("VMULPS %d(R9), %s, %s", u*s.bytes(), k.v(x+u), k.v(sum+u))
	}

	k.Comment("Powers and their sums. Words of two rows replace the rows.")
	k.Arg("s", "SI")
	k.I("MOVQ SI, DI")
	k.I("SHRQ $%d, CX", s.pair-1)
	k.repeat("CX", func() {
		for i := range s.pair {
			for u := range 2 {
				a := x + 2*i + u
				k.loadTo(a, i*row+u*s.bytes(), "SI")
				k.op("VFMSUB213PS", top+u, scale, a)
				k.exp2(a, temp+2*u, temp+2*u+1, k.maskFor(u, x+2+u))
				k.op("VADDPS", a, sum+u, sum+u)
			}
		}
		if s.pair == 2 {
			k.VCVTNE2PS2BF16(x, x+1, x)
			k.VCVTNE2PS2BF16(x+2, x+3, x+2)
			k.interleave(x, x+2, x+1)
		}
		for u := range 2 {
			k.storeTo(x+u, u*s.bytes(), "DI")
		}
		k.I("ADDQ $%d, SI", s.pair*row)
		k.I("ADDQ $%d, DI", row)
	})
	for u := range 2 {
		k.storeTo(sum+u, u*s.bytes(), "R9")
	}
	k.Ret()
}

func (s *set) grad(f *asmgen.File) {
	k := s.kernel(f, "grad", "is kernels.grad; scale is the bits of a float32; rows is positive.",
		"p, ds, s, dp *float32, ld, rows, scale int, lse, delta *float32")
	const lse, delta, x, y, temp, scale = 0, 2, 4, 6, 8, 12
	k.loadConstants(lowest, c0)
	k.argScale(scale)
	k.Arg("p", "R10")
	k.Arg("ds", "R11")
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
			k.loadTo(x+u, u*s.bytes(), "SI")
			k.op("VFMSUB213PS", lse+u, scale, x+u)
			k.exp2(x+u, temp+2*u, temp+2*u+1, k.maskFor(u, y+u))
			k.loadTo(y+u, u*s.bytes(), "DI")
			k.op("VSUBPS", delta+u, y+u, y+u)
			k.op("VMULPS", x+u, y+u, y+u)
		}
		if s.pair == 2 {
			k.VCVTNE2PS2BF16(x, x+1, x)
			k.VCVTNE2PS2BF16(y, y+1, y)
		}
		for u := range 2 / s.pair {
			k.storeTo(x+u, u*s.bytes(), "R10")
			k.storeTo(y+u, u*s.bytes(), "R11")
		}
		for _, pointer := range []string{"SI", "DI", "R10", "R11"} {
			k.I("ADDQ DX, %s", pointer)
		}
	})
	k.Ret()
}
