package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// neonQuadKernel writes a kernel of rows × 16 columns by BFMMLA: a register of a holds four steps along k of two rows,
// one of b those of two columns, and one of sums 2×2. Packed columns hold the two words of four steps next to each
// other (sizes.run); this kernel combines rows of a in pairs.
//
// For 6 rows and 8 steps, 48 BFMMLA take 12 cycles on four pipes, where BFDOT took 24; rows of a take 6 instructions
// more, 13½ cycles. Beside them stand 14 loads of 22 registers, prefetches, pointers and the loop: 83 instructions by
// rows and 73 by columns, 6 in a cycle of at least 8. So vector pipes limit.
func neonQuadKernel(f *asmgen.File, rows int, form string) {
	const rowBytes, a, spare = 8 * 32, 24, 30
	fn := f.Func(fmt.Sprintf("kernel%sBFMMLA%dx%d", form, rows, neonCols),
		fmt.Sprintf("is a kernel of %d rows and %d columns.", rows, neonCols), neonKernelParams)
	pairs := rows / 2
	pointers := neonKernelStart(fn, rows, form, 3)
	fn.I("ADD $1, R7")
	fn.I("LSR $1, R7") // words to pairs of them
	for i := range 8 * pairs {
		fn.VClear(i)
	}
	// multiply adds the products of quad u with pairs of rows in registers.
	multiply := func(u int, a []int, b [2]int) {
		for j := 0; j < 8; j += 2 {
			fn.VLoadPair(b[0], b[1], u*rowBytes+16*j, "R6")
			for i, x := range a {
				fn.V("bfmmla", 8*i+j, x, b[0])
				fn.V("bfmmla", 8*i+j+1, x, b[1])
			}
		}
	}
	// steps writes n quads: 2 or one.
	steps := func(n int) {
		if form == byRows {
			for i, p := range pointers {
				fn.VLoad(a+i, 8*n, 0, p)
				fn.I("ADD $%d, %s", 8*n, p)
			}
			quads := [2][]int{}
			for i := range pairs {
				first := a + 2*i - 1
				if i == 0 {
					first = spare
				}
				fn.V("zip1.2d", first, a+2*i, a+2*i+1)
				quads[0], quads[1] = append(quads[0], first), append(quads[1], a+2*i)
				if n > 1 {
					fn.V("zip2.2d", a+2*i, a+2*i, a+2*i+1)
				}
			}
			for u := range n {
				multiply(u, quads[u], [2]int{29, 31})
			}
		} else {
			for u := range n {
				x := []int{a, a + 1, a + 2}[:pairs]
				for i, r := range x {
					fn.VLoad(r, 16, 16*i, "R0")
				}
				fn.I("ADD R13, R0")
				multiply(u, x, [2]int{27 + 2*u, 28 + 2*u})
			}
		}
		if n > 1 {
			neonKernelAhead(fn, 0)
			neonKernelAhead(fn, 1)
			neonKernelAhead(fn, 3)
		}
		fn.I("ADD $%d, R6", n*rowBytes)
	}
	loop, tail, done := fn.NewLabel("loop"), fn.NewLabel("tail"), fn.NewLabel("done")
	fn.I("SUBS $2, R7")
	fn.I("BLT %s", tail)
	fn.I("PCALIGN $32")
	fn.Label(loop)
	steps(2)
	fn.I("SUBS $2, R7")
	fn.I("BGE %s", loop)
	fn.Label(tail)
	fn.I("ADDS $2, R7")
	fn.I("BEQ %s", done)
	steps(1)
	fn.Label(done)
	for i := 0; i < 8*pairs; i += 2 { // four columns of a row in each register
		fn.VCopy(a, i)
		fn.V("zip1.2d", i, a, i+1)
		fn.V("zip2.2d", i+1, a, i+1)
	}
	neonEnd(fn, rows, a, func(row, quad int) int { return 8*(row/2) + 2*quad + row%2 })
}
