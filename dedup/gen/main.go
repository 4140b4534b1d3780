// Gen writes the assembly kernels of dedup.
package main

import (
	"log"

	"anneal/internal/asmgen"
)

func main() {
	f := &asmgen.File{Package: "dedup", Generator: "gen/main.go"}
	normalise(f)
	minHashAVX2(f)
	minHashAVX512(f)
	fn := f.Func("prefetchLine", "asks for the cache line at p.", "p unsafe.Pointer")
	fn.Arg("p", "AX")
	fn.I("PREFETCHT0 (AX)")
	fn.I("RET")
	for _, f := range []*asmgen.File{f, neon()} {
		if err := f.Write("kernels"); err != nil {
			log.Fatal(err)
		}
	}
}

// normalise maps 64 bytes a turn: letters to lower case, digits to 0, bytes above ASCII to themselves, the rest to
// blanks.
func normalise(f *asmgen.File) {
	fn := f.Func("normaliseAVX2", "does what normaliseGeneric does, for AVX2.",
		"dst *byte, src *byte, blocks int, masks *uint64, high *uint64")
	constants := []struct {
		value int
		name  string
	}{
		{0x20, "lower case, and the blank"}, {0x1f, "0x80 − 'a': letters become the lowest signed bytes"},
		{0x9a, "0x80 + 26"},
		{0x50, "0x80 − '0'"}, {0x8a, "0x80 + 10"}, {0x30, "'0'"},
	}
	for i, c := range constants {
		fn.I("MOVL $%#x, AX // %s", c.value, c.name)
		fn.I("VMOVD AX, X%d", 8+i)
		fn.I("VPBROADCASTB X%d, Y%d", 8+i, 8+i)
	}
	fn.I("VPXOR Y14, Y14, Y14 // all bytes so far")
	fn.Arg("dst", "DI")
	fn.Arg("src", "SI")
	fn.Arg("blocks", "CX")
	fn.Arg("masks", "DX")
	fn.Label("loop")
	for half, mask := range []string{"R8", "R9"} {
		fn.I("VMOVDQU %d(SI), Y0", 32*half)
		fn.I("VPOR Y0, Y14, Y14")
		fn.I("VPOR Y0, Y8, Y1")
		fn.I("VPADDB Y1, Y9, Y2")
		fn.I("VPCMPGTB Y2, Y10, Y2 // letters")
		fn.I("VPADDB Y0, Y11, Y3")
		fn.I("VPCMPGTB Y3, Y12, Y3 // digits")
		fn.I("VPBLENDVB Y2, Y1, Y8, Y4")
		fn.I("VPBLENDVB Y3, Y13, Y4, Y4")
		fn.I("VPBLENDVB Y0, Y0, Y4, Y4 // the top bit chooses: above ASCII")
		fn.I("VMOVDQU Y4, %d(DI)", 32*half)
		fn.I("VPOR Y2, Y3, Y2")
		fn.I("VPOR Y0, Y2, Y2")
		fn.I("VPMOVMSKB Y2, %s", mask)
	}
	fn.I("SHLQ $32, R9")
	fn.I("ORQ R9, R8")
	fn.I("MOVQ R8, (DX)")
	fn.I("ADDQ $64, SI")
	fn.I("ADDQ $64, DI")
	fn.I("ADDQ $8, DX")
	fn.I("DECQ CX")
	fn.I("JNZ loop")
	fn.I("VPMOVMSKB Y14, AX")
	fn.Arg("high", "DX")
	fn.I("MOVQ AX, (DX)")
	fn.Ret()
}

const params = "min *uint32, a *uint32, b *uint32, x *uint32, n int"

func start(fn *asmgen.Func) {
	for _, p := range []struct{ name, reg string }{{"min", "DI"}, {"a", "R8"}, {"b", "R9"}, {"x", "SI"}, {"n", "CX"}} {
		fn.Arg(p.name, p.reg)
	}
}

// minHashAVX2 keeps the 112 minima in 14 registers and reads a and b from the first-level cache.
func minHashAVX2(f *asmgen.File) {
	fn := f.Func("minHashAVX2", "does what minHashGeneric does, for AVX2.", params)
	start(fn)
	for i := range 14 {
		fn.I("VMOVDQU %d(DI), Y%d", 32*i, i)
	}
	fn.Label("loop")
	fn.I("VPBROADCASTD (SI), Y14")
	for i := range 14 {
		fn.I("VPMULLD %d(R8), Y14, Y15", 32*i)
		fn.I("VPADDD %d(R9), Y15, Y15", 32*i)
		fn.I("VPMINUD Y15, Y%d, Y%d", i, i)
	}
	fn.I("ADDQ $4, SI")
	fn.I("DECQ CX")
	fn.I("JNZ loop")
	for i := range 14 {
		fn.I("VMOVDQU Y%d, %d(DI)", i, 32*i)
	}
	fn.Ret()
}

// minHashAVX512 keeps everything in registers: 7 of minima, 7 of a, 7 of b.
func minHashAVX512(f *asmgen.File) {
	fn := f.Func("minHashAVX512", "does what minHashGeneric does, for AVX-512F.", params)
	start(fn)
	for i := range 7 {
		fn.I("VMOVDQU32 %d(DI), Z%d", 64*i, i)
		fn.I("VMOVDQU32 %d(R8), Z%d", 64*i, 7+i)
		fn.I("VMOVDQU32 %d(R9), Z%d", 64*i, 14+i)
	}
	fn.Label("loop")
	fn.I("VPBROADCASTD (SI), Z21")
	for i := range 7 {
		fn.I("VPMULLD Z%d, Z21, Z%d", 7+i, 22+i)
	}
	for i := range 7 {
		fn.I("VPADDD Z%d, Z%d, Z%d", 14+i, 22+i, 22+i)
		fn.I("VPMINUD Z%d, Z%d, Z%d", 22+i, i, i)
	}
	fn.I("ADDQ $4, SI")
	fn.I("DECQ CX")
	fn.I("JNZ loop")
	for i := range 7 {
		fn.I("VMOVDQU32 Z%d, %d(DI)", i, 64*i)
	}
	fn.Ret()
}
