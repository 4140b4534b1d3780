package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// transpose writes the transposition of up to 16 rows, in blocks of 16×16 words, by shuffles in registers, so that
// memory is read and written in whole vectors. BF16 elements are transposed as pairs and widened afterwards, which
// halves the shuffles.
func transpose(f *asmgen.File, l loader) {
	fn := f.Func("transpose"+l.name, "copies rows×cols elements transposed, rows at most 16.",
		"dst *float32, ldd int, src unsafe.Pointer, lds, rows, cols int")
	in := l
	split := l.name == bf16.name
	if split {
		in = bf16Pair
	}
	per := 16 * in.wide // elements of a row per block
	l.consts(fn)
	fn.Arg("dst", "DI")
	fn.Arg("ldd", "R8")
	fn.Arg("src", "SI")
	fn.Arg("lds", "R9")
	fn.Arg("rows", "DX")
	fn.Arg("cols", "BX")
	fn.I("SHLQ $2, R8")
	fn.I("SHLQ $%d, R9", log2(l.size))
	fn.I("LEAQ (R9)(R9*2), R10") // three rows of src
	words(fn, "DX", 3)

	whole, edge, done := fn.NewLabel("whole"), fn.NewLabel("edge"), fn.NewLabel("done")
	fn.I("CMPQ DX, $16")
	fn.I("JLT %s", edge)
	fn.Label(whole)
	fn.I("CMPQ BX, $%d", per)
	fn.I("JLT %s", edge)
	fn.I("MOVQ SI, R11")
	for i := range 16 {
		in.load(fn, "0(R11)"+[]string{"", "(R9*1)", "(R9*2)", "(R10*1)"}[i%4], "", i, 16)
		if i%4 == 3 {
			fn.I("LEAQ (R11)(R9*4), R11")
		}
	}
	for _, z := range turn(fn) {
		if split {
			fn.I("VPSLLD $16, Z%d, Z20", z)
			fn.I("VMOVUPS Z20, (DI)")
			fn.I("VPANDD Z27, Z%d, Z%d", z, z)
			fn.I("ADDQ R8, DI")
		}
		fn.I("VMOVUPS Z%d, (DI)", z)
		fn.I("ADDQ R8, DI")
	}
	fn.I("ADDQ $%d, SI", per*l.size)
	fn.I("SUBQ $%d, BX", per)
	fn.I("JMP %s", whole)

	fn.Comment("a block with fewer rows or columns")
	fn.Label(edge)
	fn.I("TESTQ BX, BX")
	fn.I("JLE %s", done)
	fn.I("MOVQ $%d, CX", per)
	fn.I("CMPQ BX, CX")
	fn.I("CMOVQLT BX, CX")
	in.maskOf(fn, "CX", 1)
	fn.I("MOVQ SI, R11")
	loaded := fn.NewLabel("loaded")
	for i := range 16 {
		if i > 0 {
			fn.I("CMPQ DX, $%d", i)
			fn.I("JLE %s", loaded)
		}
		in.load(fn, "0(R11)", "K1", i, 16)
		fn.I("ADDQ R9, R11")
	}
	fn.Label(loaded)
	if in.wide == 2 && !split {
		fn.I("INCQ CX")
		fn.I("SHRQ $1, CX")
	}
	for _, z := range turn(fn) {
		if split {
			fn.I("VPSLLD $16, Z%d, Z20", z)
			storeWhile(fn, done, 20)
			fn.I("VPANDD Z27, Z%d, Z%d", z, z)
		}
		storeWhile(fn, done, z)
	}
	fn.I("ADDQ $%d, SI", per*l.size)
	fn.I("SUBQ $%d, BX", per)
	fn.I("JMP %s", edge)
	fn.Label(done)
	fn.Ret()
}

// storeWhile stores a row of the transposed block unless CX, the rows left, is 0.
func storeWhile(fn *asmgen.Func, done string, z int) {
	fn.I("DECQ CX")
	fn.I("JLT %s", done)
	fn.I("VMOVUPS Z%d, K3, (DI)", z)
	fn.I("ADDQ R8, DI")
}

// turn transposes the 16×16 words in Z0…Z15, using Z16, and returns the registers of the result's rows. Each step
// replaces two registers by two shuffles of them.
func turn(fn *asmgen.Func) [16]int {
	var r [16]int
	for i := range r {
		r[i] = i
	}
	free := 16
	pair := func(i, j int, lo, hi string) {
		fn.I("%s Z%d, Z%d, Z%d", lo, r[j], r[i], free)
		fn.I("%s Z%d, Z%d, Z%d", hi, r[j], r[i], r[j])
		r[i], free = free, r[i]
	}
	for i := 0; i < 16; i += 2 {
		pair(i, i+1, "VUNPCKLPS", "VUNPCKHPS")
	}
	// r[4g], r[4g+1]: columns 0,1 and 2,3 of rows 4g, 4g+1 in every 128-bit lane; r[4g+2], r[4g+3]: of the next two
	// rows.
	for g := 0; g < 16; g += 4 {
		pair(g, g+2, "VUNPCKLPD", "VUNPCKHPD")
		pair(g+1, g+3, "VUNPCKLPD", "VUNPCKHPD")
		r[g+1], r[g+2] = r[g+2], r[g+1]
	}
	// r[4g+c]: in lane L, column 4L+c of rows 4g…4g+3. Next, lanes are transposed between groups.
	var out [16]int
	for c := range 4 {
		pair(c, 4+c, "VSHUFF32X4 $0x88,", "VSHUFF32X4 $0xdd,")
		pair(8+c, 12+c, "VSHUFF32X4 $0x88,", "VSHUFF32X4 $0xdd,")
		pair(c, 8+c, "VSHUFF32X4 $0x88,", "VSHUFF32X4 $0xdd,")
		pair(4+c, 12+c, "VSHUFF32X4 $0x88,", "VSHUFF32X4 $0xdd,")
		out[c], out[8+c], out[4+c], out[12+c] = r[c], r[8+c], r[4+c], r[12+c]
	}
	return out
}

// storeF32 writes the store of a tile of sums to an FP32 result.
func storeF32(f *asmgen.File) {
	store(f, "storeF32", "writes scaled sums to an FP32 result, or adds them with add.", 4,
		func(fn *asmgen.Func, mask []string, add bool) {
			for v := range 2 {
				scaled(fn, mask[v], v)
				if add {
					fn.I("VADDPS %d(DI), Z%d, %s, Z%d", 64*v, v, mask[v], v)
				}
				fn.I("VMOVUPS Z%d, %s, %d(DI)", v, mask[v], 64*v)
			}
		})
}

// storeBF16 writes the store of a tile of sums to a BF16 result.
func storeBF16(f *asmgen.File) {
	store(f, "storeBF16", "rounds scaled sums to a BF16 result, or adds them to it with add.", 2,
		func(fn *asmgen.Func, mask []string, add bool) {
			for v := range 2 {
				scaled(fn, mask[v], v)
				if add {
					bf16.load(fn, fmt.Sprintf("%d(DI)", 32*v), mask[v], 2+v, 0)
					fn.I("VADDPS Z%d, Z%d, Z%d", 2+v, v, v)
				}
				round(fn, v, 16+v)
			}
			fn.I("VPERMT2W Z17, Z25, Z16") // the upper halves of both
			fn.I("VMOVDQU16 Z16, K3, (DI)")
		})
}

// storeF16 writes the store of a tile of sums to an FP16 result.
func storeF16(f *asmgen.File) {
	store(f, "storeF16", "rounds scaled sums to an FP16 result, or adds them to it with add.", 2,
		func(fn *asmgen.Func, mask []string, add bool) {
			for v := range 2 {
				scaled(fn, mask[v], v)
				if add {
					f16.load(fn, fmt.Sprintf("%d(DI)", 32*v), mask[v], 2+v, 0)
					fn.I("VADDPS Z%d, Z%d, Z%d", 2+v, v, v)
				}
				fn.I("VCVTPS2PH $0, Z%d, %s, %d(DI)", v, mask[v], 32*v)
			}
		})
}

// scaled loads vector v of a row of sums, multiplied by the scale in Z28.
func scaled(fn *asmgen.Func, mask string, v int) {
	fn.I("VMULPS.Z %d(SI), Z28, %s, Z%d", 64*v, mask, v)
}

func store(f *asmgen.File, name, doc string, size int, row func(fn *asmgen.Func, mask []string, add bool)) {
	fn := f.FuncOf(name, doc, "dst unsafe.Pointer, ldd int, c *float32, rows int, cols int, add int, scale float32", "")
	if name == "storeBF16" {
		roundConsts(fn)
		fn.I("VMOVDQU16 ·odd(SB), Z25")
	}
	fn.I("VBROADCASTSS %s, Z28", fn.ArgRef("scale"))
	fn.Arg("dst", "DI")
	fn.Arg("ldd", "R8")
	fn.Arg("c", "SI")
	fn.Arg("rows", "DX")
	fn.Arg("cols", "CX")
	fn.I("SHLQ $%d, R8", log2(size))
	fn.I("MOVQ $-1, AX")
	fn.I("BZHIQ CX, AX, AX")
	fn.I("KMOVD AX, K3")
	fn.I("KMOVW AX, K1")
	fn.I("SHRQ $16, AX")
	fn.I("KMOVW AX, K2")
	adding := fn.NewLabel("adding")
	fn.I("CMPQ %s, $0", fn.ArgRef("add"))
	fn.I("JNE %s", adding)
	for _, add := range []bool{false, true} {
		loop := fn.NewLabel("row")
		if add {
			fn.Label(adding)
		}
		fn.Label(loop)
		row(fn, []string{"K1", "K2"}, add)
		fn.I("ADDQ $128, SI")
		fn.I("ADDQ R8, DI")
		fn.I("DECQ DX")
		fn.I("JNZ %s", loop)
		fn.Ret()
	}
}
