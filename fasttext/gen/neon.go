package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

const neonParams = "x *float32, matrix *float32, rows *int32, n int, columns int, used int"

// neon writes the kernels of arm64: as on amd64, but without masks, so that the registers of a block hold four numbers
// each. 32 columns of a row take 8 additions, 2 cycles on four pipes, 8 loads, and 12 instructions for its address,
// its prefetches and the loop.
func neon() *asmgen.File {
	f := &asmgen.File{Package: "fasttext", Generator: "gen/main.go", Arch: "arm64"}
	fn := f.Func("addRowsNEON", "does what addRowsGeneric does for the columns of a block.", neonParams)
	neonRows(fn, func(used int) {
		for j := range used {
			fn.VLoad(registers+j, 16, 16*j, "R9")
			fn.V("fadd", j, j, registers+j)
		}
	}, func(used int) {
		for j := range used {
			fn.VStore(j, 16, 16*j, "R0")
		}
	})
	fn = f.Func("addToRowsNEON", "does what addToRowsGeneric does for the columns of a block.", neonParams)
	neonRows(fn, func(used int) {
		for j := range used {
			fn.VLoad(registers+j, 16, 16*j, "R9")
			fn.V("fadd", registers+j, registers+j, j)
			fn.VStore(registers+j, 16, 16*j, "R9")
		}
	}, func(int) {})
	return f
}

// neonRows writes a loop over rows for each number of registers that a block can use. Registers from 0 on hold x, the
// address of a row is R9; body handles a row.
func neonRows(fn *asmgen.Func, body, after func(used int)) {
	for i, name := range []string{"x", "matrix", "rows", "n", "columns", "used"} {
		fn.Arg(name, fmt.Sprintf("R%d", i))
	}
	fn.I("LSL $2, R4")     // bytes of a row
	fn.I("SUB $1, R3, R6") // the last row
	fn.I("MOVD ZR, R7")    // rows done
	for used := 1; used < registers; used++ {
		fn.I("CMP $%d, R5", used)
		fn.I("BEQ use%d", used)
	}
	for used := registers; used >= 1; used-- {
		fn.Label(fmt.Sprintf("use%d", used))
		for j := range used {
			fn.VLoad(j, 16, 16*j, "R0")
		}
		loop := fn.NewLabel("loop")
		fn.Label(loop)
		fn.I("ADD $%d, R7, R8", ahead)
		fn.I("CMP R6, R8")
		fn.I("CSEL GT, R6, R8, R8")
		fn.I("MOVW (R2)(R8<<2), R8")
		fn.I("MADD R4, R1, R8, R8")
		for b := 0; b < 16*used; b += 64 {
			fn.I("PRFM %d(R8), PLDL1KEEP", b)
		}
		fn.I("MOVW (R2)(R7<<2), R9")
		fn.I("MADD R4, R1, R9, R9")
		body(used)
		fn.I("ADD $1, R7")
		fn.I("CMP R3, R7")
		fn.I("BLT %s", loop)
		after(used)
		fn.Ret()
	}
}
