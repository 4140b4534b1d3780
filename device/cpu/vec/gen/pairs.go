package main

import "anneal/internal/asmgen"

// rotatePairs writes the rotations of neighbouring pairs. The results equal those of rotate, bit for bit.
func (s *isa) rotatePairs(f *asmgen.File) {
	if s.neon() {
		s.neonRotatePairs(f)
		s.narrowRotatePairs(f)
		return
	}
	// x·cos + neighbour·∓sin, where both lanes of a pair hold its angle's cos and sin.
	k := s.kernel(f, "rotatePairs", "rotates neighbouring pairs in x. Elements past whole vectors are skipped.",
		[]string{"x", "cos", "sin"}, "", "")
	k.whole = true
	const firstSign = 14 // the sign bit in the first lane of each pair
	k.fillFar(signBit, firstSign)
	k.I("VPSRLQ $32, %[1]s, %[1]s", k.reg(firstSign))
	both := func(slice string, u, dst int) {
		k.I("VPMOVZXDQ %d(%s)(AX*2), %s", 2*k.lanes*u, k.base[slice], k.reg(dst))
		k.op("VMOVSLDUP", dst, dst)
	}
	k.loop(2, func(u int) {
		x, neighbour, cos, sin := 4*u, 4*u+1, 4*u+2, 4*u+3
		k.load("x", u, x)
		both("cos", u, cos)
		both("sin", u, sin)
		k.op("VXORPS", firstSign, sin, sin)
		k.I("VPERMILPS $0xb1, %s, %s", k.reg(x), k.reg(neighbour))
		k.op("VMULPS", x, cos, x)
		k.op("VFMADD231PS", neighbour, sin, x)
		k.store(x, "x", u)
	})
	k.Ret()
	s.narrowRotatePairs(f)
}

// narrowRotatePairs works on lanes that hold a pair of bfloat16: the upper half is the second number; the lower half,
// shifted up, the first.
func (s *isa) narrowRotatePairs(f *asmgen.File) {
	k := s.kernel(f, "narrowRotatePairs", "rotates neighbouring pairs in consecutive heads.",
		[]string{"cos", "sin", "x:pairs"}, "heads int", "")
	k.useRounding()
	k.eachHead([]string{"x"}, 4, func() {
		k.loop(2, func(u int) {
			a, b, cos, sin, next := 5*u, 5*u+1, 5*u+2, 5*u+3, 5*u+4
			k.ahead(u, "x")
			k.load("x", u, b)
			k.shift("VPSLLD", b, a, 16)
			k.upper(b)
			k.load("cos", u, cos)
			k.load("sin", u, sin)
			k.op("VMULPS", a, cos, next)
			k.op("VFNMADD231PS", b, sin, next)
			k.op("VMULPS", b, cos, b)
			k.op("VFMADD231PS", a, sin, b)
			k.roundBF16(next)
			k.roundBF16(b)
			k.shift("VPSRLD", next, next, 16)
			k.upper(b)
			k.op("VORPS", next, b, b)
			k.store(b, "x", u)
		})
	})
}
