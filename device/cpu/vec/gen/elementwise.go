package main

import "anneal/internal/asmgen"

func (s *isa) elementwise(f *asmgen.File) {
	k := s.kernel(f, "add", "is dst += x.", []string{"dst", "x"}, "", "")
	k.loop(4, func(u int) {
		k.load("dst", u, u)
		k.load("x", u, u+4)
		k.op("VADDPS", u+4, u, u)
		k.store(u, "dst", u)
	})
	k.Ret()

	k = s.kernel(f, "axpy", "is dst += a·x.", []string{"dst", "x"}, "a float32", "")
	k.broadcast("a", 8)
	k.loop(4, func(u int) {
		k.load("dst", u, u)
		k.load("x", u, u+4)
		k.op("VFMADD231PS", u+4, 8, u)
		k.store(u, "dst", u)
	})
	k.Ret()

	k = s.kernel(f, "scale", "is dst = a·x.", []string{"dst", "x"}, "a float32", "")
	k.broadcast("a", 8)
	k.loop(4, func(u int) {
		k.load("x", u, u)
		k.op("VMULPS", u, 8, u)
		k.store(u, "dst", u)
	})
	k.Ret()

	k = s.kernel(f, "mul", "is dst = a·b.", []string{"dst", "a", "b"}, "", "")
	k.loop(4, func(u int) {
		k.load("a", u, u)
		k.load("b", u, u+4)
		k.op("VMULPS", u+4, u, u)
		k.store(u, "dst", u)
	})
	k.Ret()

	k = s.kernel(f, "mix", "is dst = a·x + b·y.", []string{"dst", "x", "y"}, "a float32, b float32", "")
	k.broadcast("a", 12)
	k.broadcast("b", 13)
	k.loop(4, func(u int) {
		k.load("x", u, u)
		k.op("VMULPS", u, 12, u)
		k.load("y", u, u+4)
		k.op("VFMADD231PS", u+4, 13, u)
		k.store(u, "dst", u)
	})
	k.Ret()

	k = s.kernel(f, "mulAdd", "is dst += a·b.", []string{"dst", "a", "b"}, "", "")
	k.loop(4, func(u int) {
		k.load("dst", u, u)
		k.load("a", u, u+4)
		k.load("b", u, u+8)
		k.op("VFMADD231PS", u+4, u+8, u)
		k.store(u, "dst", u)
	})
	k.Ret()

	k = s.kernel(f, "rotate", "turns the pairs (a, b).", []string{"a", "b", "cos", "sin"}, "", "")
	k.loop(2, func(u int) {
		a, b, cos, sin, next := 6*u, 6*u+1, 6*u+2, 6*u+3, 6*u+4
		k.load("a", u, a)
		k.load("b", u, b)
		k.load("cos", u, cos)
		k.load("sin", u, sin)
		k.op("VMULPS", a, cos, next)
		k.op("VFNMADD231PS", b, sin, next)
		k.op("VMULPS", b, cos, b)
		k.op("VFMADD231PS", a, sin, b)
		k.store(next, "a", u)
		k.store(b, "b", u)
	})
	k.Ret()
}

// adamW reads its nine constants in the order of the fields of vec.AdamW. It takes subnormal numbers for 0, by modes of
// the control register (Go code runs with the default ones): the moments of a token that is not seen decay into them
// and stay there, and each would cost a hundred cycles.
func (s *isa) adamW(f *asmgen.File) {
	k := s.kernel(f, "adamW", "is one step of AdamW.", []string{"p", "g", "m", "v"}, "o *AdamW[float32]", "")
	const scale, beta1, keep1, beta2, keep2, decay, rate, correct2, eps = 5, 6, 7, 8, 9, 10, 11, 12, 13
	k.Arg("o", "R11")
	for i := range 9 {
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
		k.op("VFMADD231PS", decay, p, m)
		k.op("VSUBPS", m, p, p)
		k.store(p, "p", u)
	})
	k.I("LDMXCSR ·keepSubnormals(SB)")
	k.Ret()
}
