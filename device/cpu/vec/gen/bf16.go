package main

import "anneal/internal/asmgen"

// Scratch registers of kernels with slices of bfloat16: two for AVX2; for AVX-512 one, plus the indices of the odd
// words of a register, and those that spread 16 words over its odd words.
const (
	roundTemp = 12
	nanTemp   = 13
	oddWords  = 13
	spread    = 14
)

// useBF16 prepares for slices of bfloat16, if the kernel has any. AVX2 has no masked loads and stores of 16 bits, so
// such kernels process only whole vectors there.
func (k *kernel) useBF16() {
	for _, narrow := range k.bf16 {
		if !narrow {
			continue
		}
		k.useRounding()
		if k.neon() {
			return
		}
		if k.wide() {
			k.I("VMOVDQU ·oddWords(SB), Y%d", oddWords)
			k.I("VMOVDQU32 ·spreadWords(SB), Z%d", spread)
			k.I("MOVL $0xaaaaaaaa, R10")
			k.I("KMOVD R10, K6")
		}
		k.whole = !k.wide()
		return
	}
}

// useRounding loads the constants of rounding.
func (k *kernel) useRounding() {
	if k.neon() {
		k.use(belowHalf, upperHalf)
		k.fillFar(quietBit, neonQuiet)
		return
	}
	k.use(lastBit, belowHalf, half, upperHalf)
}

// shift sets a register to another one shifted: VPSLLD left, VPSRLD right.
func (k *kernel) shift(name string, src, dst, bits int) {
	if k.neon() {
		k.VShift(map[string]string{"VPSLLD": "shl", "VPSRLD": "ushr"}[name], k.real(dst), k.real(src), bits)
		return
	}
	k.I("%s $%d, %s, %s", name, bits, k.reg(src), k.reg(dst))
}

// loadBF16 reads words into the upper halves of the lanes.
func (k *kernel) loadBF16(at string, dst int) {
	switch {
	case !k.wide():
		k.I("VPMOVZXWD %s, %s", at, k.reg(dst))
		k.I("VPSLLD $16, %[1]s, %[1]s", k.reg(dst))
		return
	case k.tail:
		k.I("VMOVDQU16.Z %s, K1, Y%d", at, dst)
	default:
		k.I("VMOVDQU16 %s, Y%d", at, dst)
	}
	k.I("VPERMW.Z %[1]s, %[2]s, K6, %[1]s", k.reg(dst), k.reg(spread))
}

// round rounds register x, in place, to the element type of the slice. Nearest even in integers: add half of the last
// place, or just below half if the last bit is even. The upper half is the result; store or upper drops the lower
// half. A NaN keeps its upper half and becomes quiet.
func (k *kernel) round(x int, slice string) {
	if k.bf16[slice] {
		k.roundBF16(x)
	}
}

func (k *kernel) roundBF16(x int) {
	if k.neon() {
		k.neonRound(k.real(x))
		return
	}
	if k.wide() {
		k.I("VCMPPS $3, %[1]s, %[1]s, K4", k.reg(x)) // unordered
		k.nearest(x)
		k.I("VPORD.BCST ·lanes+%d(SB), %s, K4, %s", 32*quietBit, k.reg(x), k.reg(roundTemp))
		k.I("VMOVDQA32 %s, %s", k.reg(roundTemp), k.reg(x))
		return
	}
	k.I("VCMPPS $3, %[1]s, %[1]s, %[2]s", k.reg(x), k.reg(nanTemp)) // unordered
	k.nearest(x)
	k.with("VPOR", quietBit, x, x)
	k.op("VBLENDVPS", nanTemp, x, roundTemp, x)
}

// roundQuiet is round for results of arithmetic on bfloat16 only: a NaN is then quiet, and the lower half of its bits
// is 0, so that the addition does not change the upper half.
func (k *kernel) roundQuiet(x int, slice string) {
	if k.bf16[slice] {
		if k.neon() {
			k.neonNearest(k.real(x), roundTemp)
			k.VCopy(k.real(x), roundTemp)
			return
		}
		k.nearest(x)
		k.I("%s %s, %s", map[bool]string{true: "VMOVDQA32", false: "VMOVDQA"}[k.wide()], k.reg(roundTemp), k.reg(x))
	}
}

// nearest sets roundTemp to the bits of x plus half of the last place of bfloat16, or just below half.
func (k *kernel) nearest(x int) {
	if k.wide() {
		k.I("VPTESTMD %s, %s, K5", k.constant(lastBit), k.reg(x))
		k.with("VPADDD", belowHalf, x, roundTemp)
		k.I("VPADDD %s, %s, K5, %s", k.constant(half), k.reg(x), k.reg(roundTemp))
		return
	}
	k.I("VPSRLD $16, %s, %s", k.reg(x), k.reg(roundTemp))
	k.with("VPAND", tieBit, roundTemp, roundTemp)
	k.with("VPADDD", belowHalf, roundTemp, roundTemp)
	k.op("VPADDD", x, roundTemp, roundTemp)
}

// upper clears the lower half of a rounded register, which gives the float32 that will be read back.
func (k *kernel) upper(x int) { k.with("VANDPS", upperHalf, x, x) }

func (k *kernel) storeBF16(src int, at string) {
	if k.wide() {
		k.op("VPERMW", src, oddWords, roundTemp)
		mask := ""
		if k.tail {
			mask = "K1, "
		}
		k.I("VMOVDQU16 Y%d, %s%s", roundTemp, mask, at)
		return
	}
	k.I("VPSRLD $16, %s, %s", k.reg(src), k.reg(roundTemp))
	k.I("VEXTRACTI128 $1, Y%d, X%d", roundTemp, nanTemp)
	k.I("VPACKUSDW X%[2]d, X%[1]d, X%[1]d", roundTemp, nanTemp)
	k.I("VMOVDQU X%d, %s", roundTemp, at)
}

// conversions writes pack and unpack.
func (s *isa) conversions(f *asmgen.File) {
	limit := ""
	if s.name == "AVX2" {
		limit = " Elements past a multiple of 8 are skipped."
	}
	k := s.kernel(f, "pack", "rounds src to bfloat16."+limit, []string{"dst:bf16", "src"}, "", "")
	k.useBF16()
	k.loop(4, func(u int) {
		k.ahead(u, "src", "dst")
		k.load("src", u, u)
		k.round(u, "dst")
		k.store(u, "dst", u)
	})
	k.Ret()

	k = s.kernel(f, "unpack", "widens bfloat16."+limit, []string{"dst", "src:bf16"}, "", "")
	k.useBF16()
	k.loop(4, func(u int) {
		k.ahead(u, "src")
		k.load("src", u, u)
		k.store(u, "dst", u)
	})
	k.Ret()
}

// stochastic writes packStochastic: it adds the low halves of the random words to the numbers; the upper halves of
// the sums are the results. For NaN the addition could carry into the sign, so NaN is only made quiet.
func (s *isa) stochastic(f *asmgen.File) {
	limit := ""
	if s.name == "AVX2" {
		limit = " Elements past a multiple of 8 are skipped."
	}
	k := s.kernel(f, "packStochastic", "rounds src to bfloat16 with 16-bit random numbers."+limit,
		[]string{"dst:bf16", "src", "random:u32"}, "", "")
	k.useBF16()
	const quiet = 8
	k.fillFar(quietBit, quiet)
	k.loop(2, func(u int) {
		x, r, t := 3*u, 3*u+1, 3*u+2
		k.load("src", u, x)
		k.load("random", u, r)
		if k.neon() {
			k.V("fcmeq", t, x, x)
			k.V("add", r, x, r)
			k.V("orr", x, x, quiet)
			k.V("bif", r, x, t)
			k.store(r, "dst", u)
			return
		}
		if k.wide() {
			k.I("VCMPPS $3, %[1]s, %[1]s, K4", k.reg(x)) // unordered
			k.I("VPADDD %s, %s, %s", k.reg(r), k.reg(x), k.reg(r))
			k.I("VPORD %s, %s, K4, %s", k.reg(quiet), k.reg(x), k.reg(r))
			k.store(r, "dst", u)
			return
		}
		k.I("VCMPPS $3, %[1]s, %[1]s, %[2]s", k.reg(x), k.reg(t))
		k.op("VPADDD", r, x, r)
		k.op("VPOR", quiet, x, x)
		k.op("VBLENDVPS", t, x, r, r)
		k.store(r, "dst", u)
	})
	k.Ret()
}

// narrow writes the primitives of vec.Narrow: rows of bfloat16 from memory to memory in one pass.
func (s *isa) narrow(f *asmgen.File) {
	s.swiGLU(f, "narrowSwiGLU", ":bf16")
	s.swiGLUGrad(f, "narrowSwiGLUGrad", ":bf16")
	s.reluSquared(f, "narrowReLUSquared", ":bf16")

	k := s.kernel(f, "narrowNormalise", "is xhat = r·x, y = xhat·gain.", []string{"y:bf16", "xhat:bf16", "x", "gain"},
		"r float32", "")
	k.useBF16()
	k.broadcast("r", 11)
	k.loop(2, func(u int) {
		x, gain := 2*u, 2*u+1
		k.ahead(u, "x", "xhat", "y")
		k.load("x", u, x)
		k.op("VMULPS", 11, x, x)
		k.round(x, "xhat")
		k.store(x, "xhat", u)
		k.upper(x)
		k.load("gain", u, gain)
		k.op("VMULPS", gain, x, x)
		k.round(x, "y")
		k.store(x, "y", u)
	})
	k.Ret()

	k = s.kernel(f, "narrowMul", "is y = xhat·gain.", []string{"y:bf16", "xhat:bf16", "gain"}, "", "")
	k.useBF16()
	k.loop(2, func(u int) {
		x, gain := 2*u, 2*u+1
		k.ahead(u, "xhat", "y")
		k.load("xhat", u, x)
		k.load("gain", u, gain)
		k.op("VMULPS", gain, x, x)
		k.round(x, "y")
		k.store(x, "y", u)
	})
	k.Ret()

	k = s.kernel(f, "narrowNormDot", "is dgain += dy·xhat; it returns Σ gain·dy·xhat.",
		[]string{"dgain", "dy:bf16", "xhat:bf16", "gain"}, "", "float32")
	k.useBF16()
	k.zero(0, 2)
	k.loop(2, func(u int) {
		dy, xhat, gain, dgain := 2+4*u, 3+4*u, 4+4*u, 5+4*u
		k.ahead(u, "dy", "xhat")
		k.load("dy", u, dy)
		k.load("xhat", u, xhat)
		k.load("gain", u, gain)
		k.load("dgain", u, dgain)
		k.op("VFMADD231PS", dy, xhat, dgain)
		k.store(dgain, "dgain", u)
		k.op("VMULPS", dy, gain, gain)
		k.op("VFMADD231PS", gain, xhat, u)
	})
	k.fold("VADDPS", 0, 2)
	k.across("VADD", "PS", 0)
	k.ret("SS", 0)

	k = s.kernel(f, "narrowNormGrad", "is dx += r·(gain·dy − mean·xhat).",
		[]string{"dx", "dy:bf16", "xhat:bf16", "gain"}, "r float32, mean float32", "")
	k.useBF16()
	k.broadcast("r", 10)
	k.broadcast("mean", 11)
	k.loop(2, func(u int) {
		dy, xhat, gain, dx := 4*u, 4*u+1, 4*u+2, 4*u+3
		k.ahead(u, "dx")
		k.load("dy", u, dy)
		k.load("xhat", u, xhat)
		k.load("gain", u, gain)
		k.load("dx", u, dx)
		k.op("VMULPS", gain, dy, dy)
		k.op("VFNMADD231PS", 11, xhat, dy)
		k.op("VFMADD231PS", 10, dy, dx)
		k.store(dx, "dx", u)
	})
	k.Ret()

	k = s.kernel(f, "narrowRotate", "rotates the pairs (a, b) of consecutive heads.",
		[]string{"cos", "sin", "a:bf16", "b:bf16"}, "heads int", "")
	k.useBF16()
	k.eachHead([]string{"a", "b"}, 4, func() {
		k.loop(2, func(u int) {
			a, b, cos, sin, next := 5*u, 5*u+1, 5*u+2, 5*u+3, 5*u+4
			k.ahead(u, "a", "b")
			k.load("a", u, a)
			k.load("b", u, b)
			k.load("cos", u, cos)
			k.load("sin", u, sin)
			k.op("VMULPS", a, cos, next)
			k.op("VFNMADD231PS", b, sin, next)
			k.op("VMULPS", b, cos, b)
			k.op("VFMADD231PS", a, sin, b)
			k.round(next, "a")
			k.store(next, "a", u)
			k.round(b, "b")
			k.store(b, "b", u)
		})
	})
}
