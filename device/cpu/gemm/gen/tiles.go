package main

import "anneal/internal/asmgen"

// tiles writes a kernel of type strip for up to 32 rows of a, or up to 16, as described in strip.go. T0 and T1 are
// the sums of the upper 16 rows, T2 and T3 of the lower, T4 and T5 the rows of a, T6 and T7 the columns of b.
//
// A step of 32 elements along k loads four tiles of 16 cache lines, which takes two load ports 32 cycles, for four
// products of 16 cycles each. The rows of a stay in the first-level cache; b comes from the second level, and its
// loads carry a non-temporal hint. If sums are rounded, those of a panel are stored in a block of memory, which is
// rounded row by row during the next panel's products.
func tiles(f *asmgen.File, name string, high, round bool) {
	fn := f.Func(name, "is a kernel of type strip, which documents the parameters.",
		"config, a unsafe.Pointer, lda int, b unsafe.Pointer, strideB, steps, panels int, "+
			"from unsafe.Pointer, fromRow, fromPanel int, to unsafe.Pointer, toRow, toPanel, rows int, "+
			"block unsafe.Pointer, ahead uintptr, aheadLine, aheadStep, aheadPanel, aheadPanels int, wholeRows int")
	t := &strip{fn, high}
	fn.Arg("config", "AX")
	fn.LDTILECFG("AX")
	fn.Arg("lda", "DX")
	fn.I("MOVL $128, R9") // between rows of b, and of sums
	fn.Arg("ahead", "R10")
	fn.Arg("aheadLine", "R11")
	fn.Arg("toRow", "R12")
	if round { // nothing to round yet: no rows at R13
		fn.Arg("rows", "AX")
		fn.I("SHLQ $7, AX")
		fn.I("MOVQ AX, %s", fn.ArgRef("rows"))
		fn.I("ANDQ $~511, AX")
		fn.I("MOVQ AX, %s", fn.ArgRef("wholeRows"))
		fn.Arg("block", "R13")
		fn.I("ADDQ R13, %s", fn.ArgRef("rows"))
		fn.I("ADDQ R13, %s", fn.ArgRef("wholeRows"))
		fn.Arg("rows", "R13")
	}

	panel, loop := fn.NewLabel("panel"), fn.NewLabel("loop")
	fn.Label(panel)
	fn.Arg("a", "SI")
	fn.I("MOVQ DX, R8")
	fn.I("SHLQ $4, R8")
	fn.I("ADDQ SI, R8") // the lower rows
	fn.Arg("b", "BX")
	t.start()
	if !round {
		fn.Arg("to", "DI")
		fn.I("ADDQ %s, DI", fn.ArgRef("toPanel"))
	}
	fn.Arg("steps", "CX")
	fn.I("PCALIGN $32")
	fn.Label(loop)
	fn.TILELOADDT1(0, "BX", "R9", 6)
	fn.TILELOADD(0, "SI", "DX", 4)
	fn.TDPBF16PS(6, 4, 0)
	fn.I("PREFETCHT1 (R10)")
	fn.I("PREFETCHT1 (R10)(R11*1)")
	fn.I("LEAQ (R10)(R11*2), AX")
	t.each(func() {}, func() { fn.TILELOADD(0, "R8", "DX", 5); fn.TDPBF16PS(6, 5, 2) })
	fn.I("PREFETCHT1 (AX)")
	fn.I("PREFETCHT1 (AX)(R11*1)")
	fn.I("ADDQ %s, R10", fn.ArgRef("aheadStep"))
	fn.TILELOADDT1(64, "BX", "R9", 7)
	fn.TDPBF16PS(7, 4, 1)
	t.each(func() {}, func() { fn.TDPBF16PS(7, 5, 3) })
	if round {
		done := fn.NewLabel("rounded")
		fn.I("CMPQ R13, %s", fn.ArgRef("wholeRows"))
		fn.I("JGE %s", done)
		for range 4 {
			t.roundRow()
		}
		fn.Label(done)
	} else { // prefetch the sums of the next panel, or their destination
		for _, row := range []string{"", "(R12*1)"} {
			fn.I("PREFETCHT0 (DI)%s", row)
			fn.I("PREFETCHT0 64(DI)%s", row)
		}
		fn.I("LEAQ (DI)(R12*2), DI")
	}
	fn.I("ADDQ $64, SI")
	fn.I("ADDQ $64, R8")
	fn.I("ADDQ $2048, BX")
	fn.I("DECQ CX")
	fn.I("JNZ %s", loop)

	if round {
		t.roundRest()
		fn.Arg("block", "R13")
		t.store("R13", "R9", 2048)
		fn.Arg("to", "DI")
	} else {
		fn.Arg("to", "DI")
		fn.I("MOVQ R12, AX")
		fn.I("SHLQ $4, AX")
		t.store("DI", "R12", 0)
	}
	t.add("toPanel", "to")
	t.add("strideB", "b")
	on := fn.NewLabel("on")
	fn.I("ADDQ %s, R10", fn.ArgRef("aheadPanel"))
	fn.I("DECQ %s", fn.ArgRef("aheadPanels"))
	fn.I("JNZ %s", on)
	fn.I("XORL AX, AX") // all prefetched: repeat the same line
	fn.I("XORL R11, R11")
	fn.I("MOVQ AX, %s", fn.ArgRef("aheadStep"))
	fn.I("MOVQ AX, %s", fn.ArgRef("aheadPanel"))
	fn.Label(on)
	fn.I("DECQ %s", fn.ArgRef("panels"))
	fn.I("JNZ %s", panel)
	fn.TILERELEASE()
	if round {
		t.roundRest()
	}
	fn.Ret()
}

// strip is a kernel of type strip being written.
type strip struct {
	*asmgen.Func
	high bool // has lower rows
}

func (t *strip) each(upper, lower func()) {
	upper()
	if t.high {
		lower()
	}
}

// add adds one parameter to another, using AX.
func (t *strip) add(from, to string) {
	t.Arg(from, "AX")
	t.I("ADDQ AX, %s", t.ArgRef(to))
}

// start clears the sums or loads their initial values.
func (t *strip) start() {
	t.each(func() { t.TILEZERO(0); t.TILEZERO(1) }, func() { t.TILEZERO(2); t.TILEZERO(3) })
	zero := t.NewLabel("zero")
	t.Arg("from", "AX")
	t.I("TESTQ AX, AX")
	t.I("JEQ %s", zero)
	t.Arg("fromRow", "CX")
	t.each(func() { t.TILELOADD(0, "AX", "CX", 0); t.TILELOADD(64, "AX", "CX", 1) }, func() {
		t.I("SHLQ $4, CX")
		t.I("ADDQ CX, AX")
		t.Arg("fromRow", "CX")
		t.TILELOADD(0, "AX", "CX", 2)
		t.TILELOADD(64, "AX", "CX", 3)
	})
	t.add("fromPanel", "from")
	t.Label(zero)
}

// store stores the sums in rows of pitch bytes from p on. The lower rows are lower bytes further; if lower is 0, AX
// holds the distance, which is then added to p.
func (t *strip) store(p, pitch string, lower int) {
	t.each(func() { t.TILESTORED(0, 0, p, pitch); t.TILESTORED(1, 64, p, pitch) }, func() {
		if lower == 0 {
			t.I("ADDQ AX, %s", p)
		}
		t.TILESTORED(2, lower, p, pitch)
		t.TILESTORED(3, lower+64, p, pitch)
	})
}

// roundRow rounds the sums of a row from R13 to DI and advances to the next.
func (t *strip) roundRow() {
	t.I("VMOVUPS (R13), Z0")
	t.I("VMOVUPS 64(R13), Z1")
	t.VCVTNE2PS2BF16(0, 1, 2)
	t.I("VMOVUPS Z2, (DI)")
	t.I("ADDQ $128, R13")
	t.I("ADDQ R12, DI")
}

// roundRest rounds the remaining rows.
func (t *strip) roundRest() {
	row, done := t.NewLabel("row"), t.NewLabel("done")
	t.Label(row)
	t.I("CMPQ R13, %s", t.ArgRef("rows"))
	t.I("JGE %s", done)
	t.roundRow()
	t.I("JMP %s", row)
	t.Label(done)
}

// peakTiles writes a loop of tile products on registers only.
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

// fewTiles writes a kernel of type few for tiles: the 32 rows of b are the rows of a tile, and the rows of a its
// columns, so that b need not be packed. The sums are stored transposed: row j of c holds column j of the result.
func fewTiles(f *asmgen.File, l loader) {
	fn := f.Func("fewTiles"+l.name, "multiplies unpacked rows of b by the transpose of a.",
		"config unsafe.Pointer, c, a *float32, row int, b unsafe.Pointer, ldb, steps int, block unsafe.Pointer, "+
			"next uintptr")
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
