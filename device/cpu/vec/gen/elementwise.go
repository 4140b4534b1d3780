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
		k.ahead(u, "a")
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

	k = s.kernel(f, "rotate", "rotates the pairs (a, b).", []string{"a", "b", "cos", "sin"}, "", "")
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
