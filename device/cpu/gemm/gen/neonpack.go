package main

import "anneal/internal/asmgen"

// The packing of arm64. NEON has no masks, so these functions pack whole blocks only; portable Go packs the rest
// (pack_arm64.go).

const neonPackParams = "dst *float32, ldd int, src unsafe.Pointer, lds, rows, cols int"

// neonPackStart loads the parameters of a packing function: dst in R0, src in R2, the rows in R4 and the columns in
// R5. R1 and R3 become the bytes between rows.
func neonPackStart(fn *asmgen.Func, size, perWord int) {
	for i, name := range []string{"dst", "ldd", "src", "lds", "rows", "cols"} {
		fn.Arg(name, []string{"R0", "R1", "R2", "R3", "R4", "R5"}[i])
	}
	fn.I("LSL $%d, R1", log2(perWord)+2)
	fn.I("LSL $%d, R3", log2(size))
}

// each writes a loop that counts a copy of register n down by step; body writes the loop's body.
func each(fn *asmgen.Func, n, counter string, step int, body func()) {
	loop := fn.NewLabel("loop")
	fn.I("MOVD %s, %s", n, counter)
	fn.I("PCALIGN $16")
	fn.Label(loop)
	body()
	fn.I("SUBS $%d, %s", step, counter)
	fn.I("BNE %s", loop)
}

// neonCopyRows writes the copy of rows, of a multiple of 8 elements. Rows in panels are such a copy, too. 8 elements in
// FP32 take 7 instructions, in BF16 9.
func neonCopyRows(f *asmgen.File, l neonLoader) {
	fn := f.Func("copyRows"+l.name, "copies rows×cols elements, row by row, cols a multiple of 8.", neonPackParams)
	neonPackStart(fn, l.size, 1)
	l.consts(fn)
	each(fn, "R4", "R6", 1, func() {
		fn.I("MOVD R0, R8")
		fn.I("MOVD R2, R9")
		each(fn, "R5", "R7", 8, func() {
			for v := range 2 {
				fn.VLoad(v, l.bytes(), v*l.bytes(), "R9")
				l.widen(fn, v, 2)
			}
			fn.VStorePair(0, 1, 0, "R8")
			fn.I("ADD $%d, R9", 2*l.bytes())
			fn.I("ADD $32, R8")
		})
		fn.I("ADD R1, R0")
		fn.I("ADD R3, R2")
	})
	fn.Ret()
}

// neonTransposeRows writes the transposition of 4×4 words at a time, 26 instructions in FP32, of which 8 take vector
// pipes and 8 move memory: 4 or 5 cycles for 16 words.
func neonTransposeRows(f *asmgen.File, l neonLoader) {
	fn := f.Func("transpose"+l.name, "copies rows×cols elements transposed, both multiples of 4.", neonPackParams)
	neonPackStart(fn, l.size, 1)
	l.consts(fn)
	each(fn, "R4", "R6", 4, func() {
		fn.I("MOVD R0, R8")
		fn.I("MOVD R2, R9")
		for i, to := range []string{"R10", "R11", "R12"} {
			fn.I("ADD R3, %s, %s", []string{"R9", "R10", "R11"}[i], to)
		}
		each(fn, "R5", "R7", 4, func() {
			for i, p := range []string{"R9", "R10", "R11", "R12"} {
				fn.VLoad(i, l.bytes(), 0, p)
				l.widen(fn, i, 4)
				fn.I("ADD $%d, %s", l.bytes(), p)
			}
			neonTranspose(fn, 0, 1, 4)
			for i := range 4 {
				fn.VStore(i, 16, 0, "R8")
				fn.I("ADD R1, R8")
			}
		})
		fn.I("ADD $16, R0")
		fn.I("ADD R3<<2, R2")
	})
	fn.Ret()
}

// neonCopyQuads writes the copy of rows of BF16, of a multiple of 8 elements.
func neonCopyQuads(f *asmgen.File, l quadLoader) {
	fn := f.Func("copyRows"+l.name, "copies rows×cols elements, row by row, cols a multiple of 8.", neonPackParams)
	neonPackStart(fn, l.size, 1)
	each(fn, "R4", "R6", 1, func() {
		fn.I("MOVD R0, R8")
		fn.I("MOVD R2, R9")
		each(fn, "R5", "R7", 8, func() {
			l.eight(fn, 0, 1, 0, "R9")
			fn.VStore(0, 16, 0, "R8")
			fn.I("ADD $%d, R9", 8*l.size)
			fn.I("ADD $16, R8")
		})
		fn.I("ADD R1, R0")
		fn.I("ADD R3, R2")
	})
	fn.Ret()
}

// neonTransposeQuads writes the transposition of quads, four elements of a row at a time: 12 instructions in BF16 for
// 16 elements.
func neonTransposeQuads(f *asmgen.File, l quadLoader) {
	per := 16 / l.size
	fn := f.Func("transpose"+l.name, "copies rows×cols elements, four of a row next to each other, rows a multiple of "+
		"2 and cols one of 8.", neonPackParams)
	neonPackStart(fn, l.size, 2)
	each(fn, "R4", "R6", 2, func() {
		fn.I("MOVD R0, R8")
		fn.I("MOVD R2, R9")
		fn.I("ADD R3, R9, R10")
		each(fn, "R5", "R7", per, func() {
			l.pair(fn, 0, 2, 0, "R9", "R10")
			fn.I("ADD $16, R9")
			fn.I("ADD $16, R10")
			for q := range per / 4 {
				fn.VStore(q, 16, 0, "R8")
				fn.I("ADD R1, R8")
			}
		})
		fn.I("ADD $16, R0")
		fn.I("ADD R3<<1, R2")
	})
	fn.Ret()
}

// neonPanelQuads writes the packing of quads that run down columns, in one panel: 21 instructions in BF16 for 32
// elements, of which 8 take vector pipes.
func neonPanelQuads(f *asmgen.File, l quadLoader) {
	fn := f.Func("panel"+l.name, "copies rows×cols elements, four of a column next to each other, rows a multiple of "+
		"4 and cols one of 8.", neonPackParams)
	neonPackStart(fn, l.size, 2)
	each(fn, "R4", "R6", 4, func() {
		fn.I("MOVD R0, R8")
		fn.I("MOVD R2, R9")
		for i, to := range []string{"R10", "R11", "R12"} {
			fn.I("ADD R3, %s, %s", []string{"R9", "R10", "R11"}[i], to)
		}
		each(fn, "R5", "R7", 8, func() {
			for i, p := range []string{"R9", "R10", "R11", "R12"} {
				l.eight(fn, i, 4, 0, p)
				fn.I("ADD $%d, %s", 8*l.size, p)
			}
			for i, name := range []string{"zip1.8h", "zip2.8h"} {
				fn.V(name, 4+i, 0, 1)
				fn.V(name, 6+i, 2, 3)
			}
			for i := range 2 {
				fn.V("zip1", 2*i, 4+i, 6+i)
				fn.V("zip2", 2*i+1, 4+i, 6+i)
			}
			fn.VStorePair(0, 1, 0, "R8")
			fn.VStorePair(2, 3, 32, "R8")
			fn.I("ADD $64, R8")
		})
		fn.I("ADD R1, R0")
		fn.I("ADD R3<<2, R2")
	})
	fn.Ret()
}

// neonStoreBF16 writes the store of sums to a BF16 result: 8 elements take 24 instructions, 29 if they are added, of
// which 17 or 21 take vector pipes.
func neonStoreBF16(f *asmgen.File) {
	fn := f.FuncOf("storeBF16", "rounds scaled sums to a BF16 result, or adds them to it with add; cols is a multiple "+
		"of 8.", "dst unsafe.Pointer, ldd int, c *float32, rows int, cols int, add int, scale float32", "")
	for i, name := range []string{"dst", "ldd", "c", "rows", "cols", "add"} {
		fn.Arg(name, []string{"R0", "R1", "R2", "R3", "R4", "R5"}[i])
	}
	fn.I("FMOVS %s, F16", fn.ArgRef("scale"))
	fn.VSplat(16, 16, 0)
	neonRounded.consts(fn)
	each(fn, "R3", "R6", 1, func() {
		fn.I("MOVD R0, R8")
		fn.I("MOVD R2, R9")
		each(fn, "R4", "R7", 8, func() {
			fresh := fn.NewLabel("fresh")
			fn.VLoadPair(0, 1, 0, "R9")
			for v := range 2 {
				fn.V("fmul", v, v, 16)
			}
			fn.I("CBZ R5, %s", fresh)
			fn.VLoad(2, 16, 0, "R8")
			fn.VShift("shll", 3, 2, 16)
			fn.VShift("shll2", 4, 2, 16)
			for v := range 2 {
				fn.V("fadd", v, v, 3+v)
			}
			fn.Label(fresh)
			for v := range 2 {
				neonRounded.widen(fn, v, 2)
			}
			fn.V("uzp2.8h", 0, 0, 1)
			fn.VStore(0, 16, 0, "R8")
			fn.I("ADD $32, R9")
			fn.I("ADD $16, R8")
		})
		fn.I("ADD R1<<1, R0")
		fn.I("ADD $128, R2")
	})
	fn.Ret()
}
