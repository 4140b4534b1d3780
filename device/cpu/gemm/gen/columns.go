package main

import "anneal/internal/asmgen"

// columnsBF16 writes the transposition of columns of BF16 to rows of pairs along k, for tiles: 32 elements of 8
// columns at a time. It loads 16 bytes of a memory row at a time, so that each 128-bit lane of a register comes from a
// different row: in Z i, lane L is from row 8L + 2i; in Z 4+i, from the row after it. Pairing both gives the pairs
// 4L + i in lane L, and transposing 4×4 of them within lanes gives whole rows.
//
// That is 24 shuffles and 24 insertions for 256 elements.
func columnsBF16(f *asmgen.File) {
	fn := f.Func("columnsBF16", "copies k×cols elements so that k runs along the row. k must be a multiple of 32; "+
		"columns are processed in groups of 8.",
		"dst *float32, ldd int, src unsafe.Pointer, lds, k, cols int")
	fn.Arg("lds", "R9")
	fn.I("SHLQ $1, R9")
	fn.I("LEAQ (R9)(R9*2), R10") // three rows
	fn.I("LEAQ (R10)(R9*4), R11")
	fn.I("MOVQ R9, R12")
	fn.I("SHLQ $5, R12") // 32 rows
	fn.Arg("ldd", "R8")
	fn.I("SHLQ $2, R8")
	fn.I("LEAQ (R8)(R8*2), R13")
	fn.Arg("k", "CX")
	fn.Arg("src", "SI")
	fn.Arg("dst", "DI")

	run, eight := fn.NewLabel("run"), fn.NewLabel("eight")
	row := func(n int) string { // of eight rows, starting at BX
		return []string{"(BX)", "(BX)(R9*1)", "(BX)(R9*2)", "(BX)(R10*1)", "(BX)(R9*4)", "5", "(BX)(R10*2)",
			"(BX)(R11*1)"}[n]
	}
	fn.Label(run)
	fn.Arg("cols", "DX")
	fn.I("XORL AX, AX") // byte offset within the memory row
	fn.Label(eight)
	fn.I("LEAQ (SI)(AX*1), BX")
	for lane := range 4 {
		for _, n := range []int{0, 1, 2, 3, 4, 6, 7, 5} { // row 8·lane + n is in Z n/2, or Z 4+n/2 if n is odd
			at := row(n)
			if n == 5 {
				fn.I("ADDQ R9, BX")
				at = "(BX)(R9*4)"
			}
			z := n/2 + n%2*4
			if lane == 0 {
				fn.I("VMOVDQU %s, X%d", at, z)
			} else {
				fn.I("VINSERTI32X4 $%d, %s, Z%d, Z%[3]d", lane, at, z)
			}
		}
		if lane < 3 {
			fn.I("LEAQ (BX)(R11*1), BX")
		}
	}
	for i := range 4 { // Z 8+i: pairs of columns 0–3, Z 12+i: 4–7
		fn.I("VPUNPCKLWD Z%d, Z%d, Z%d", 4+i, i, 8+i)
		fn.I("VPUNPCKHWD Z%d, Z%d, Z%d", 4+i, i, 12+i)
	}
	fn.Arg("ldd", "BX")
	fn.I("IMULQ AX, BX") // AX/2 columns, 4·ldd bytes each
	fn.I("LEAQ (DI)(BX*2), BX")
	for half := range 2 {
		p := 8 + 4*half
		fn.I("VPUNPCKLDQ Z%d, Z%d, Z0", p+1, p)
		fn.I("VPUNPCKHDQ Z%d, Z%d, Z1", p+1, p)
		fn.I("VPUNPCKLDQ Z%d, Z%d, Z2", p+3, p+2)
		fn.I("VPUNPCKHDQ Z%d, Z%d, Z3", p+3, p+2)
		for c := range 4 {
			fn.I("%s Z%d, Z%d, Z%d", []string{"VPUNPCKLQDQ", "VPUNPCKHQDQ"}[c%2], 2+c/2, c/2, 4+c)
			fn.I("VMOVUPS Z%d, (BX)%s", 4+c, []string{"", "(R8*1)", "(R8*2)", "(R13*1)"}[c])
		}
		if half == 0 {
			fn.I("LEAQ (BX)(R8*4), BX")
		}
	}
	fn.I("ADDQ $16, AX")
	fn.I("SUBQ $8, DX")
	fn.I("JGT %s", eight)
	fn.I("ADDQ R12, SI")
	fn.I("ADDQ $64, DI")
	fn.I("SUBQ $32, CX")
	fn.I("JGT %s", run)
	fn.Ret()
}
