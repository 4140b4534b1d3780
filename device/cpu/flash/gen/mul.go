package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// mul writes the microkernel. tileM · 2 registers hold sums; each step loads two registers of b and broadcasts tileM
// words of a, addressed by one pointer plus multiples of the row stride.
func (s *set) mul(f *asmgen.File) {
	k := s.kernel(f, "mul", fmt.Sprintf("is kernels.mul for tiles of %d × %d; m and k are positive.", s.tileM, s.tileN),
		"c *float32, ldc int, a *float32, rs, cs int, b *float32, ldb, m, k, add int")
	sums := 2 * s.tileM
	b0, b1, x := sums, sums+1, sums+2

	k.Arg("c", "DI")
	k.argBytes("ldc", "DX")
	k.argBytes("rs", "R8")
	k.I("LEAQ (R8)(R8*2), R9")
	k.I("LEAQ (R8)(R8*4), R10")
	k.I("LEAQ (R9)(R8*4), R11")
	k.argBytes("cs", "R12")
	k.argBytes("ldb", "R13")
	k.Arg("m", "CX")
	rows := []string{
		"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(R9*1)", "(SI)(R8*4)", "(SI)(R10*1)", "(SI)(R9*2)", "(SI)(R11*1)",
	}
	step := func() {
		k.loadTo(b0, 0, "BX")
		k.loadTo(b1, s.bytes(), "BX")
		for i := range s.tileM {
			r := x + i%2
			k.I("VBROADCASTSS %s, %s", rows[i], k.v(r))
			k.fma(b0, r, 2*i)
			k.fma(b1, r, 2*i+1)
		}
		k.I("ADDQ R12, SI")
		k.I("ADDQ R13, BX")
	}

	tile, odd, done, store, next := k.NewLabel("tile"), k.NewLabel("odd"), k.NewLabel("done"), k.NewLabel("store"),
		k.NewLabel("next")
	k.Label(tile)
	k.Arg("a", "SI")
	k.Arg("b", "BX")
	for i := range sums {
		k.op("VXORPS", i, i, i)
	}
	k.Arg("k", "AX")
	k.I("SHRQ $1, AX")
	k.I("JZ %s", odd)
	k.repeat("AX", func() { step(); step() })
	k.Label(odd)
	k.I("TESTQ $1, %s", k.ArgRef("k"))
	k.I("JZ %s", done)
	step()
	k.Label(done)
	k.I("CMPQ %s, $0", k.ArgRef("add"))
	k.I("JEQ %s", store)
	k.I("MOVQ DI, SI")
	for i := range s.tileM {
		k.I("VADDPS (SI), %[1]s, %[1]s", k.v(2*i))
		k.I("VADDPS %d(SI), %[2]s, %[2]s", s.bytes(), k.v(2*i+1))
		k.I("ADDQ DX, SI")
	}
	k.Label(store)
	for i := range s.tileM {
		k.storeTo(2*i, 0, "DI")
		k.storeTo(2*i+1, s.bytes(), "DI")
		k.I("ADDQ DX, DI")
	}
	k.I("SUBQ $%d, CX", s.tileM)
	k.I("JZ %s", next)
	k.I("LEAQ (R8*%d), SI", s.tileM)
	k.I("ADDQ SI, %s", k.ArgRef("a"))
	k.I("JMP %s", tile)
	k.Label(next)
	k.Ret()
}
