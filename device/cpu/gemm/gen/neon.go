package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

const neonCols = 16 // columns of a NEON kernel: four registers

const neonKernelParams = "to *float32, ld int, c, a *float32, lda int, b *float32, k, add int, next, later uintptr, " +
	"step, stride int"

// neonKernel writes a kernel of rows × 16 columns. The sums are registers 0 … 4·rows−1.
//
// The words of a are not broadcast, because that would take a vector pipe, but multiplied by lane. By rows, one load
// holds four words of a row, and serves four steps; by columns, one or two loads hold a step's words of all rows.
//
// 6 rows have 24 sums, enough for four pipes with a latency of 4 cycles (Neoverse V1 and V2, Apple M1 to M4), and a
// step takes 24 FMLA, in 6 cycles. Beside them stand, by rows, 2 LDP and 1½ LDR for a; by columns, 2 LDP and 2 LDR.
// Pointers, prefetches and the loop make it 31 instructions in 6 cycles of at least 8, and 5½ to 6 loaded registers,
// of which 3 are possible in each cycle. So only FMLA limits. With 6 registers for a, two are left for b: registers
// are renamed, so its loads need not wait.
func neonKernel(f *asmgen.File, rows int, form string) {
	const rowBytes = 4 * 32
	fn := f.Func(fmt.Sprintf("kernel%sNEON%dx%d", form, rows, neonCols),
		fmt.Sprintf("is a kernel of %d rows and %d columns.", rows, neonCols), neonKernelParams)
	a0 := 4 * rows
	pointers := neonKernelStart(fn, rows, form, 2)
	for i := range 4 * rows {
		fn.VClear(i)
	}

	// multiply adds the products of step u with lane(i), which is a register and a lane of it, for each row.
	multiply := func(u, b0 int, lane func(i int) (reg, l int)) {
		for half := range 2 {
			b := b0
			if b0+4 <= 32 {
				b += 2 * half
			}
			fn.VLoadPair(b, b+1, u*rowBytes+32*half, "R6")
			for j := range 2 {
				for i := range rows {
					reg, l := lane(i)
					fn.VLane("fmla", 4*i+2*half+j, b+j, reg, l)
				}
			}
		}
	}
	// steps writes n steps along k: four or one.
	steps := func(n int) {
		if form == byRows {
			for i, p := range pointers {
				fn.VLoad(a0+i, 4*n, 0, p)
				fn.I("ADD $%d, %s", 4*n, p)
			}
		}
		for u := range n {
			if form == byRows {
				multiply(u, a0+rows, func(i int) (int, int) { return a0 + i, u })
			} else {
				a := a0 + 2*(u%2)
				fn.VLoad(a, 16, 0, "R0")
				if rows > 4 {
					fn.VLoad(a+1, 4*(rows-4), 16, "R0")
				}
				fn.I("ADD R13, R0")
				multiply(u, a0+4, func(i int) (int, int) { return a + i/4, i % 4 })
			}
			if n > 1 {
				neonKernelAhead(fn, u)
			}
		}
		fn.I("ADD $%d, R6", n*rowBytes)
	}

	byFours(fn, "R7", steps)
	neonEnd(fn, rows, a0, func(row, quad int) int { return 4*row + quad })
}

// byFours writes a loop whose number of steps, 0 or more, is in a register: four at a time, and then one at a time.
func byFours(fn *asmgen.Func, count string, steps func(n int)) {
	loop, tail, single, done := fn.NewLabel("loop"), fn.NewLabel("tail"), fn.NewLabel("single"), fn.NewLabel("done")
	fn.I("SUBS $4, %s", count)
	fn.I("BLT %s", tail)
	fn.I("PCALIGN $32")
	fn.Label(loop)
	steps(4)
	fn.I("SUBS $4, %s", count)
	fn.I("BGE %s", loop)
	fn.Label(tail)
	fn.I("ADDS $4, %s", count)
	fn.I("BEQ %s", done)
	fn.Label(single)
	steps(1)
	fn.I("SUBS $1, %s", count)
	fn.I("BNE %s", single)
	fn.Label(done)
}

// neonKernelStart loads the parameters of a kernel and returns the registers of the rows of a. R13 becomes the bytes
// between rows, or, where k runs down, between steps of 1<<shift bytes for each column.
func neonKernelStart(fn *asmgen.Func, rows int, form string, shift int) []string {
	pointers := []string{"R0", "R1", "R2", "R3", "R4", "R5"}[:rows]
	fn.Arg("a", "R0")
	fn.Arg("lda", "R13")
	if form == byRows {
		fn.I("LSL $2, R13, R13")
		for i, p := range pointers[1:] {
			fn.I("ADD R13, %s, %s", pointers[i], p)
		}
	} else {
		fn.I("LSL $%d, R13, R13", shift)
	}
	fn.Arg("b", "R6")
	fn.Arg("k", "R7")
	fn.Arg("c", "R8")
	fn.Arg("next", "R9")
	fn.Arg("later", "R10")
	fn.Arg("step", "R11")
	fn.Arg("stride", "R12")
	return pointers
}

// neonKernelAhead writes what step u of four prefetches.
func neonKernelAhead(fn *asmgen.Func, u int) {
	switch u {
	case 0:
		fn.I("PRFM (R8), PLDL1KEEP")
		fn.I("ADD $32, R8")
	case 1:
		fn.I("PRFM (R9), PLDL2KEEP")
		fn.I("ADD R11, R9")
	case 3:
		fn.I("PRFM (R10), PLDL2KEEP")
		fn.I("ADD R12, R10")
	}
}

// neonEnd adds the sums of c and the old result, if requested, in this order, and stores. A register has the sums of
// four columns of a row. Four registers from temp on are scratch.
func neonEnd(fn *asmgen.Func, rows, temp int, sum func(row, quad int) int) {
	const rowBytes = 4 * 32
	plain, store := fn.NewLabel("plain"), fn.NewLabel("store")
	fn.Arg("add", "R16")
	fn.Arg("to", "R14")
	fn.Arg("ld", "R15")
	fn.I("LSL $2, R15")
	add := func(p string, offset, i int) {
		for half := range 2 {
			fn.VLoadPair(temp+2*half, temp+2*half+1, offset+32*half, p)
		}
		for j := range 4 {
			fn.V("fadd", sum(i, j), sum(i, j), temp+j)
		}
	}
	fn.I("TBZ $0, R16, %s", plain)
	fn.Arg("c", "R8")
	for i := range rows {
		add("R8", i*rowBytes, i)
	}
	fn.Label(plain)
	fn.I("TBZ $1, R16, %s", store)
	fn.I("MOVD R14, R8")
	for i := range rows {
		add("R8", 0, i)
		if i < rows-1 {
			fn.I("ADD R15, R8")
		}
	}
	fn.Label(store)
	for i := range rows {
		for half := range 2 {
			fn.VStorePair(sum(i, 2*half), sum(i, 2*half+1), 32*half, "R14")
		}
		if i < rows-1 {
			fn.I("ADD R15, R14")
		}
	}
	fn.Ret()
}

// neonPeak writes a loop of multiplications and additions on registers only: the upper limit of a kernel.
func neonPeak(f *asmgen.File, name string, multiply func(fn *asmgen.Func, sum, x int)) {
	const sums = 24
	fn := f.Func("peak"+name, "multiplies and adds registers n times, 4 times each of 24 sums.", "n int")
	for i := range 32 {
		fn.VClear(i)
	}
	fn.Arg("n", "R0")
	loop := fn.NewLabel("loop")
	fn.I("PCALIGN $32")
	fn.Label(loop)
	for range 4 {
		for i := range sums {
			multiply(fn, i, sums+i%4)
		}
	}
	fn.I("SUBS $1, R0")
	fn.I("BNE %s", loop)
	fn.Ret()
}
