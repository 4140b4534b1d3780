package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// outer writes the kernel of SME: a block of 32 rows and 32 columns is four tiles of 16×16 sums, two by two. A step
// along k loads two registers of a's column and two of b's row, and adds an outer product to each tile.
//
// Apple's M4 starts an outer product in each cycle, and each waits 4 cycles for the last one in its tile, so four
// tiles are just enough. The four loads of a step, 256 bytes, must also take 4 cycles, so a and b are packed in
// panels, in the order in which they are read. Sums leave the tiles through registers: 64 registers for the 4·k
// products of a block, which are 2,048 if k is a whole block of 512.
func outer(f *asmgen.File) {
	const rowBytes = 4 * 32
	fn := f.Func("outerSME", "is the kernel of outer products.", "a, b *float32, strideB, k, panels, rows int, "+
		"from unsafe.Pointer, fromRow, fromPanel int, to unsafe.Pointer, toRow, toPanel, add int")
	for i, name := range []string{"a", "b", "strideB", "k", "panels", "rows", "from", "fromRow", "fromPanel", "to",
		"toRow", "toPanel"} {
		fn.Arg(name, fmt.Sprintf("R%d", i))
	}
	fn.Arg("add", "R20")
	fn.SMStart()
	fn.ZAll()
	step := func(u int) {
		a, b := 4*u, 4*u+2
		for half := range 2 {
			fn.ZLoad(a+half, 2*u+half, "R16")
			fn.ZLoad(b+half, 2*u+half, "R17")
		}
		for tile := range 4 {
			fn.FMOPA(tile, a+tile/2, b+tile%2)
		}
	}
	advance := func(n int) {
		fn.I("ADD $%d, R16", n*rowBytes)
		fn.I("ADD $%d, R17", n*rowBytes)
	}

	panel := fn.NewLabel("panel")
	fn.Label(panel)
	fn.ZAClear()
	fn.I("MOVD R0, R16")
	fn.I("MOVD R1, R17")
	fn.I("MOVD R3, R19")
	byFours(fn, "R19", func(n int) {
		for u := range n {
			step(u)
		}
		advance(n)
	})
	outerSums(fn)
	fn.I("ADD R2, R1")
	fn.I("ADD R8, R6")
	fn.I("ADD R11, R9")
	fn.I("SUBS $1, R4")
	fn.I("BNE %s", panel)
	fn.SMStop()
	fn.Ret()
}

// outerSums writes the code that adds the initial sums and then the old result, if any, to the sums of the tiles, row
// by row of two tiles, and stores them.
func outerSums(fn *asmgen.Func) {
	done := fn.NewLabel("rows")
	fn.I("MOVD R9, R13")
	fn.I("MOVD R6, R15")
	fn.I("MOVD $16, R14")
	fn.I("CMP $16, R5")
	fn.I("CSEL LT, R5, R14, R14") // rows of the upper tiles
	for tile := 0; tile < 4; tile += 2 {
		fn.I("MOVD $0, R12")
		byFours(fn, "R14", func(n int) {
			for z := range 2 * n {
				fn.ZFromRow(z, tile+z%2, "R12", z/2)
			}
			outerAdd(fn, n, "R6", "R15", "R7")
			fn.I("MOVD R13, R21")
			outerAdd(fn, n, "R20", "R21", "R10")
			for i := range n {
				fn.ZStore(2*i, 0, "R13")
				fn.ZStore(2*i+1, 1, "R13")
				fn.I("ADD R10, R13")
			}
			fn.I("ADD $%d, R12", n)
		})
		if tile == 0 {
			fn.I("SUBS $16, R5, R14")
			fn.I("BLE %s", done)
		}
	}
	fn.Label(done)
}

// outerAdd writes the code that adds n rows from a pointer on, pitch bytes apart, to the rows in z0, z1, …, if a
// register is not 0.
func outerAdd(fn *asmgen.Func, n int, unless, pointer, pitch string) {
	none := fn.NewLabel("none")
	fn.I("CBZ %s, %s", unless, none)
	for i := range n {
		for half := range 2 {
			fn.ZLoad(8+2*i+half, half, pointer)
			fn.ZAdd(2*i+half, 8+2*i+half)
		}
		fn.I("ADD %s, %s", pitch, pointer)
	}
	fn.Label(none)
}

// outerPeak writes a loop of outer products on registers only: the upper limit of the kernel.
func outerPeak(f *asmgen.File) {
	fn := f.Func("peakSME", "adds outer products of registers n times, 4 times to each of 4 tiles.", "n int")
	fn.Arg("n", "R0")
	fn.SMStart()
	fn.ZAll()
	fn.ZAClear()
	loop := fn.NewLabel("loop")
	fn.Label(loop)
	for i := range 16 {
		fn.FMOPA(i%4, i%4/2, 2+i%2)
	}
	fn.I("SUBS $1, R0")
	fn.I("BNE %s", loop)
	fn.SMStop()
	fn.Ret()
}
