package main

import "anneal/internal/asmgen"

// rotatePairs writes the rotations of neighbouring pairs. The results equal those of rotate, bit for bit.
func (s *isa) rotatePairs(f *asmgen.File) {
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

	// A lane holds a pair of bfloat16: its upper half is the second number; its lower half, shifted up, the first.
	k = s.kernel(f, "narrowRotatePairs", "rotates neighbouring pairs in consecutive heads.",
		[]string{"cos", "sin", "x:pairs"}, "heads int", "")
	k.use(lastBit, belowHalf, half, upperHalf)
	k.Arg("heads", "R11")
	k.I("MOVQ CX, R12")
	k.I("SHLQ $2, R12") // bytes of a head: pairs of 4
	head, done := k.NewLabel("head"), k.NewLabel("done")
	k.Label(head)
	k.I("DECQ R11")
	k.I("JLT %s", done)
	k.loop(2, func(u int) {
		a, b, cos, sin, next := 5*u, 5*u+1, 5*u+2, 5*u+3, 5*u+4
		k.ahead(u, "x")
		k.load("x", u, b)
		k.I("VPSLLD $16, %s, %s", k.reg(b), k.reg(a))
		k.upper(b)
		k.load("cos", u, cos)
		k.load("sin", u, sin)
		k.op("VMULPS", a, cos, next)
		k.op("VFNMADD231PS", b, sin, next)
		k.op("VMULPS", b, cos, b)
		k.op("VFMADD231PS", a, sin, b)
		k.roundBF16(next)
		k.roundBF16(b)
		k.I("VPSRLD $16, %[1]s, %[1]s", k.reg(next))
		k.upper(b)
		k.op("VORPS", next, b, b)
		k.store(b, "x", u)
	})
	k.I("ADDQ R12, %s", k.base["x"])
	k.restart("cos")
	k.I("JMP %s", head)
	k.Label(done)
	k.Ret()
}
