package main

import "anneal/internal/asmgen"

// tiles writes a kernel of type strip for up to 32 rows of a, or up to 16, as strip.go describes it. T0 and T1 are the sums of the
// upper 16 rows, T2 and T3 of the lower, T4 and T5 the rows of a, T6 and T7 the columns of b.
//
// A step of 32 elements along k loads four tiles of 16 cache lines, which two load ports do in 32 cycles, for four products of 16
// cycles each. The rows of a stay in the first-level cache; b comes from the second level, and its loads say that it need not stay.
func tiles(f *asmgen.File, name string, high bool) {
	fn := f.Func(name, "is a kernel of type strip, in which the parameters have their meaning.",
		"config, a unsafe.Pointer, lda int, b unsafe.Pointer, strideB, steps, panels int, "+
			"from unsafe.Pointer, fromRow, fromPanel int, to unsafe.Pointer, toRow, toPanel, round, rows int, block unsafe.Pointer, "+
			"ahead uintptr, aheadLine, aheadStep, aheadPanel, aheadPanels int, "+
			"result uintptr, resultLine, resultRow, resultStep int")
	each := func(upper, lower func()) {
		upper()
		if high {
			lower()
		}
	}
	add := func(from, to string) {
		fn.Arg(from, "AX")
		fn.I("ADDQ AX, %s", fn.ArgRef(to))
	}
	fn.Arg("config", "AX")
	fn.LDTILECFG("AX")
	fn.Arg("lda", "DX")
	fn.I("MOVL $128, R9") // from row to row of b
	fn.Arg("ahead", "R10")
	fn.Arg("aheadLine", "R11")

	panel, zero, loop := fn.NewLabel("panel"), fn.NewLabel("zero"), fn.NewLabel("loop")
	fn.Label(panel)
	fn.Arg("a", "SI")
	fn.I("MOVQ DX, R8")
	fn.I("SHLQ $4, R8")
	fn.I("ADDQ SI, R8") // the lower rows
	fn.Arg("b", "BX")
	fn.Arg("result", "DI")
	fn.Arg("resultLine", "R12")
	fn.Arg("resultRow", "R13")
	each(func() { fn.TILEZERO(0); fn.TILEZERO(1) }, func() { fn.TILEZERO(2); fn.TILEZERO(3) })
	fn.Arg("from", "AX")
	fn.I("TESTQ AX, AX")
	fn.I("JEQ %s", zero)
	fn.Arg("fromRow", "CX")
	each(func() { fn.TILELOADD(0, "AX", "CX", 0); fn.TILELOADD(64, "AX", "CX", 1) }, func() {
		fn.I("SHLQ $4, CX")
		fn.I("ADDQ CX, AX")
		fn.Arg("fromRow", "CX")
		fn.TILELOADD(0, "AX", "CX", 2)
		fn.TILELOADD(64, "AX", "CX", 3)
	})
	add("fromPanel", "from")
	fn.Label(zero)
	fn.Arg("steps", "CX")
	fn.I("PCALIGN $32")
	fn.Label(loop)
	fn.TILELOADDT1(0, "BX", "R9", 6)
	fn.TILELOADD(0, "SI", "DX", 4)
	fn.TDPBF16PS(6, 4, 0)
	fn.I("PREFETCHT1 (R10)")
	fn.I("PREFETCHT1 (R10)(R11*1)")
	fn.I("LEAQ (R10)(R11*2), AX")
	each(func() {}, func() { fn.TILELOADD(0, "R8", "DX", 5); fn.TDPBF16PS(6, 5, 2) })
	fn.I("PREFETCHT1 (AX)")
	fn.I("PREFETCHT1 (AX)(R11*1)")
	fn.I("ADDQ %s, R10", fn.ArgRef("aheadStep"))
	fn.TILELOADDT1(64, "BX", "R9", 7)
	fn.TDPBF16PS(7, 4, 1)
	fn.I("PREFETCHT0 (DI)")
	fn.I("PREFETCHT0 (DI)(R12*1)")
	fn.I("LEAQ (DI)(R13*1), AX")
	each(func() {}, func() { fn.TDPBF16PS(7, 5, 3) })
	fn.I("PREFETCHT0 (AX)")
	fn.I("PREFETCHT0 (AX)(R12*1)")
	fn.I("ADDQ %s, DI", fn.ArgRef("resultStep"))
	fn.I("ADDQ $64, SI")
	fn.I("ADDQ $64, R8")
	fn.I("ADDQ $2048, BX")
	fn.I("DECQ CX")
	fn.I("JNZ %s", loop)

	narrow, row, next, on := fn.NewLabel("narrow"), fn.NewLabel("row"), fn.NewLabel("next"), fn.NewLabel("on")
	fn.Arg("to", "DI")
	fn.Arg("toRow", "R12")
	fn.I("CMPQ %s, $0", fn.ArgRef("round"))
	fn.I("JNE %s", narrow)
	each(func() { fn.TILESTORED(0, 0, "DI", "R12"); fn.TILESTORED(1, 64, "DI", "R12") }, func() {
		fn.I("MOVQ R12, AX")
		fn.I("SHLQ $4, AX")
		fn.I("ADDQ AX, DI")
		fn.TILESTORED(2, 0, "DI", "R12")
		fn.TILESTORED(3, 64, "DI", "R12")
	})
	fn.I("JMP %s", next)
	fn.Label(narrow)
	fn.Arg("block", "SI")
	each(func() { fn.TILESTORED(0, 0, "SI", "R9"); fn.TILESTORED(1, 64, "SI", "R9") },
		func() { fn.TILESTORED(2, 2048, "SI", "R9"); fn.TILESTORED(3, 2112, "SI", "R9") })
	fn.Arg("rows", "CX")
	fn.Label(row)
	fn.I("VMOVUPS (SI), Z0")
	fn.I("VMOVUPS 64(SI), Z1")
	fn.VCVTNE2PS2BF16(0, 1, 2)
	fn.I("VMOVUPS Z2, (DI)")
	fn.I("ADDQ $128, SI")
	fn.I("ADDQ R12, DI")
	fn.I("DECQ CX")
	fn.I("JNZ %s", row)

	fn.Label(next)
	add("toPanel", "to")
	fn.I("ADDQ AX, %s", fn.ArgRef("result"))
	add("strideB", "b")
	fn.I("ADDQ %s, R10", fn.ArgRef("aheadPanel"))
	fn.I("DECQ %s", fn.ArgRef("aheadPanels"))
	fn.I("JNZ %s", on)
	fn.I("XORL AX, AX") // all has been asked for: the same line from now on
	fn.I("XORL R11, R11")
	fn.I("MOVQ AX, %s", fn.ArgRef("aheadStep"))
	fn.I("MOVQ AX, %s", fn.ArgRef("aheadPanel"))
	fn.Label(on)
	fn.I("DECQ %s", fn.ArgRef("panels"))
	fn.I("JNZ %s", panel)
	fn.TILERELEASE()
	fn.Ret()
}

// peakTiles writes the loop of products of tiles on registers.
func peakTiles(f *asmgen.File) {
	fn := f.Func("peakTiles", "multiplies tiles n times, 4 times each of its sums.", "config unsafe.Pointer, n int")
	fn.Arg("config", "AX")
	fn.LDTILECFG("AX")
	fn.Arg("n", "CX")
	loop := fn.NewLabel("loop")
	fn.I("PCALIGN $32")
	fn.Label(loop)
	for range 4 {
		for i := range 4 {
			fn.TDPBF16PS(6+i%2, 4+i/2, i)
		}
	}
	fn.I("DECQ CX")
	fn.I("JNZ %s", loop)
	fn.TILERELEASE()
	fn.Ret()
}

// fewTiles writes a kernel of type few for tiles: the 32 rows of b are those of a tile, and the rows of a its columns, so that
// b need not be packed. The sums stand as they come: row j of c holds the column j of the result.
func fewTiles(f *asmgen.File, l loader) {
	fn := f.Func("fewTiles"+l.name, "multiplies rows of b, as they lie, by the transpose of a.",
		"config unsafe.Pointer, c, a *float32, row int, b unsafe.Pointer, ldb, steps int, block unsafe.Pointer, next uintptr")
	fn.Arg("config", "AX")
	fn.LDTILECFG("AX")
	fn.Arg("c", "DI")
	fn.Arg("a", "BX")
	fn.Arg("row", "DX")
	fn.I("MOVQ DX, R12")
	fn.I("SHLQ $4, R12") // 16 rows of a, or of c
	fn.Arg("b", "SI")
	fn.Arg("ldb", "R9")
	fn.I("MOVQ R9, R8")
	fn.I("SHLQ $4, R8")
	fn.I("ADDQ SI, R8")
	fn.Arg("next", "R10")
	fn.Arg("steps", "CX")
	fn.I("LEAQ (DI)(R12*1), R11")
	fn.TILELOADD(0, "DI", "DX", 0)
	fn.TILELOADD(0, "R11", "DX", 1)
	fn.I("MOVL $64, R13")
	loop := fn.NewLabel("loop")
	fn.Label(loop)
	fn.TILELOADD(0, "BX", "DX", 2)
	for i, p := range []string{"SI", "R8"} {
		for line := range l.size * 8 {
			fn.I("PREFETCHT1 %d(R10)", 64*line)
		}
		fn.I("ADDQ $%d, R10", 64*l.size*8)
		if l.name == bf16Pair.name {
			fn.TILELOADD(0, p, "R9", 3+i)
		} else {
			fn.I("MOVQ %s, AX", p)
			fn.Arg("block", "R11")
			for r := range 16 {
				l.load(fn, "0(AX)", "", r, 16+r%2)
				fn.I("VMOVUPS Z%d, %d(R11)", r, 64*r)
				fn.I("ADDQ R9, AX")
			}
			fn.TILELOADD(0, "R11", "R13", 3+i)
		}
		fn.TDPBF16PS(2, 3+i, i)
		fn.I("ADDQ $%d, %s", 32*l.size, p)
	}
	fn.I("ADDQ R12, BX")
	fn.I("DECQ CX")
	fn.I("JNZ %s", loop)
	fn.I("LEAQ (DI)(R12*1), R11")
	fn.TILESTORED(0, 0, "DI", "DX")
	fn.TILESTORED(1, 0, "R11", "DX")
	fn.TILERELEASE()
	fn.Ret()
}
