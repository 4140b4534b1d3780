package main

import "anneal/internal/asmgen"

// columns writes the products of columns: each lane has numbers of its own, and a column is two registers wide. Every
// loop loads two registers for two multiplications; chains of sums overlap from one key to the next.
func (s *set) columns(f *asmgen.File) {
	row := 2 * s.bytes()
	begin := func(name, params string) *kernel {
		k := s.kernel(f, name, "is kernels."+name+"; keys and size are positive.", params+", keys, size, block int")
		k.argBytes("block", "R9")
		return k
	}

	k := begin("dotColumns", "s, q, k *float32")
	k.Arg("s", "DI")
	k.Arg("q", "DX")
	k.Arg("k", "BX")
	k.Arg("keys", "CX")
	k.repeat("CX", func() {
		k.op("VXORPS", 0, 0, 0)
		k.op("VXORPS", 1, 1, 1)
		k.I("MOVQ DX, SI")
		k.I("MOVQ BX, R10")
		k.Arg("size", "AX")
		k.repeat("AX", func() { k.addProducts("SI", "R10", row, row) })
		k.storeTo(0, 0, "DI")
		k.storeTo(1, s.bytes(), "DI")
		k.I("ADDQ $%d, DI", row)
		k.I("ADDQ R9, BX")
	})
	k.Ret()

	k = begin("sumColumns", "o, s, v *float32")
	k.Arg("o", "DI")
	k.Arg("s", "DX")
	k.Arg("v", "BX")
	k.Arg("size", "CX")
	k.repeat("CX", func() {
		k.op("VXORPS", 0, 0, 0)
		k.op("VXORPS", 1, 1, 1)
		k.I("MOVQ DX, SI")
		k.I("MOVQ BX, R10")
		k.Arg("keys", "AX")
		k.repeat("AX", func() {
			k.addProducts("SI", "R10", row, 0)
			k.I("ADDQ R9, R10")
		})
		k.storeTo(0, 0, "DI")
		k.storeTo(1, s.bytes(), "DI")
		k.I("ADDQ $%d, DI", row)
		k.I("ADDQ $%d, BX", row)
	})
	k.Ret()

	k = begin("addColumns", "d, s, x *float32")
	k.Arg("d", "DI")
	k.Arg("s", "SI")
	k.Arg("x", "DX")
	k.Arg("keys", "CX")
	k.repeat("CX", func() {
		k.loadTo(2, 0, "SI")
		k.loadTo(3, s.bytes(), "SI")
		k.I("ADDQ $%d, SI", row)
		k.I("MOVQ DX, BX")
		k.I("MOVQ DI, R10")
		k.Arg("size", "AX")
		k.repeat("AX", func() {
			for u := range 2 {
				k.loadTo(u, u*s.bytes(), "R10")
				k.I("VFMADD231PS %d(BX), %s, %s", u*s.bytes(), k.v(2+u), k.v(u))
				k.storeTo(u, u*s.bytes(), "R10")
			}
			k.I("ADDQ $%d, BX", row)
			k.I("ADDQ $%d, R10", row)
		})
		k.I("ADDQ R9, DI")
	})
	k.Ret()
}

// addProducts adds the products of two columns to registers 0 and 1, and moves the pointers a and b.
func (k *kernel) addProducts(a, b string, stepA, stepB int) {
	for u := range 2 {
		k.loadTo(2+u, u*k.bytes(), a)
		k.I("VFMADD231PS %d(%s), %s, %s", u*k.bytes(), b, k.v(2+u), k.v(u))
	}
	k.I("ADDQ $%d, %s", stepA, a)
	if stepB > 0 {
		k.I("ADDQ $%d, %s", stepB, b)
	}
}
