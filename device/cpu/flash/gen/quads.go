package main

import "anneal/internal/asmgen"

// BFMMLA multiplies two rows of a by two columns of b, four BF16 elements of each, and adds to 2×2 sums in one
// register. Matrices packed down therefore hold four elements of a column next to each other, in two words: a quad.
// The kernel combines two rows of a matrix packed across.
//
// BFDOT would take words as VDPBF16PS does, without quads, but has half the products. Quads cost a seventh of what that
// saves forward, and a sixth backward: packing down takes 8 zips for 32 elements instead of 4, products of rows one zip
// for each 8 BFMMLA, and sums one for each register. By count, on four vector pipes, a row of 16 scores with E = 64
// takes 155 cycles forward by FMLA, 93 by BFDOT and 65 by BFMMLA, 39 of them for products; backward 352, 195 and 128,
// 101 of them for products.

func quadsFile() *asmgen.File {
	f := &asmgen.File{Package: "flash", Generator: "gen/main.go", Arch: "arm64"}
	quadsMul(f, true)
	quadsMul(f, false)
	neonSoftmax(f, true)
	neonGrad(f, true)
	quadsDot(f)
	quadsZip(f)
	quadsTranspose(f)
	return f
}

// quadsMul writes a microkernel of 4 × 16: registers 0 … 15 hold 2×2 sums each, those of two rows in eight. A step, one
// quad along k, multiplies 2 registers of a, from 16 on, by 8 of b, from 24 on.
//
// Two steps are 32 BFMMLA, 8 cycles of four vector pipes, and 8 LDP of b. If a is packed down, 2 LDP load four rows
// each: 48 instructions and 20 loaded registers, 6 and 2.5 per cycle. If it is packed across, 4 loads hold two quads
// of a row each, which 4 zips combine in registers 20 … 23: 53 instructions in 9 cycles. Vector pipes limit both on a
// CPU that loads three registers per cycle and forwards a sum within four cycles. A tile costs 16 MOVI and 16 zips
// more, and 16 FADD if it adds.
func quadsMul(f *asmgen.File, across bool) {
	name, form := "mulDownBFMMLA", "down"
	if across {
		name, form = "mulAcrossBFMMLA", "across"
	}
	k := neon{f.Func(name, "is kernels.mul for a packed "+form+", in tiles of 4 × 16; m is positive, k too and even.",
		"c *float32, ldc int, a *float32, lda int, b *float32, ldb, m, k, add int")}
	const a, zipped, b = 16, 20, 24
	k.args("c", "ldc:4", "a", "lda:4", "b", "ldb:4", "m", "k", "add")
	k.I("LSL $1, R5") // a row of quads
	if across {
		k.I("ADD R3, R3, R9")  // two rows of a
		k.I("ADD R3, R9, R10") // three
	} else {
		k.I("LSL $1, R3")
	}
	multiply := func(x int) {
		for j := 0; j < 8; j += 2 {
			k.VLoadPair(b+j, b+j+1, 16*j, "R12")
		}
		for i := range 2 {
			for j := range 8 {
				k.V("bfmmla", 8*i+j, x+i, b+j)
			}
		}
		k.I("ADD R5, R12")
	}
	// steps writes n steps: 2 or one.
	steps := func(n int) {
		if !across {
			for u := range n {
				k.VLoadPair(a+2*u, a+2*u+1, 0, "R11")
				k.I("ADD R3, R11")
				multiply(a + 2*u)
			}
			return
		}
		k.VLoad(a, 8*n, 0, "R11")
		for i, rows := range []string{"R3", "R9", "R10"} {
			k.VLoadAt(a+1+i, 8*n, "R11", rows)
		}
		k.I("ADD $%d, R11", 8*n)
		for u := range n {
			for i := range 2 {
				k.V([]string{"zip1.2d", "zip2.2d"}[u], zipped+2*u+i, a+2*i, a+2*i+1)
			}
		}
		for u := range n {
			multiply(zipped + 2*u)
		}
	}
	tile, odd, done, store := k.NewLabel("tile"), k.NewLabel("odd"), k.NewLabel("done"), k.NewLabel("store")
	k.Label(tile)
	k.I("MOVD R2, R11")
	k.I("MOVD R4, R12")
	for i := range 16 {
		k.VClear(i)
	}
	k.I("LSR $2, R7, R13")
	k.I("CBZ R13, %s", odd)
	k.repeat("R13", func() { steps(2) })
	k.Label(odd)
	k.I("TBZ $1, R7, %s", done)
	steps(1)
	k.Label(done)
	for i := 0; i < 16; i += 2 { // four columns of a row in each register from 16 on
		k.V("zip1.2d", 16+i, i, i+1)
		k.V("zip2.2d", 17+i, i, i+1)
	}
	sum := func(row, quarter int) int { return 16 + 8*(row/2) + 2*quarter + row%2 }
	k.I("CBZ R8, %s", store)
	k.I("MOVD R0, R11")
	for i := range 4 {
		k.load4(4*i, "R11")
		for q := range 4 {
			k.V("fadd", sum(i, q), sum(i, q), 4*i+q)
		}
		k.I("ADD R1, R11")
	}
	k.Label(store)
	for i := range 4 {
		k.VStorePair(sum(i, 0), sum(i, 1), 0, "R0")
		k.VStorePair(sum(i, 2), sum(i, 3), 32, "R0")
		k.I("ADD R1, R0")
	}
	if across {
		k.I("ADD R3<<2, R2")
	} else {
		k.I("ADD $32, R2")
	}
	k.I("SUBS $4, R6")
	k.I("BNE %s", tile)
	k.Ret()
}

// quadsDot sums the products of 32 elements at a time: those of the even and of the odd quads are on the diagonals of
// the sums.
func quadsDot(f *asmgen.File) {
	k := neon{f.Func("dotBFMMLA", "is kernels.dot; rows and cols are positive.",
		"d, a, b *float32, ld, rows, cols int")}
	k.args("d", "a", "b", "ld:4", "rows", "cols")
	k.eachRow("R4", "R5", map[string]string{"R10": "R1", "R11": "R2"},
		func() {
			for u := range 4 {
				k.VClear(u)
			}
		},
		func() {
			k.load4(4, "R10")
			k.load4(8, "R11")
			k.four("bfmmla", 0, 4, 8)
			k.I("ADD $%d, R10", neonRow)
			k.I("ADD $%d, R11", neonRow)
		},
		func() {
			k.V("fadd", 0, 0, 1)
			k.V("fadd", 2, 2, 3)
			k.V("fadd", 0, 0, 2)
			k.VInsert(1, 0, 0, 3)
			k.V("fadd", 0, 0, 1)
			k.VStore(0, 4, 0, "R0")
			k.I("ADD $4, R0")
			k.I("ADD R3, R1")
			k.I("ADD R3, R2")
		})
	k.Ret()
}

// quadsZip writes the packing of four rows down, 8 elements of each at a time: 21 instructions for 32 elements, of
// which 8 take vector pipes.
func quadsZip(f *asmgen.File) {
	k := neon{f.Func("zipBFMMLA", "is kernels.zip; rows is a positive multiple of 4, cols one of 8.",
		"dst *float32, ldd int, src *float32, lds, rows, cols int")}
	k.args("dst", "ldd:4", "src", "lds:4", "rows", "cols")
	k.I("LSL $1, R1") // a row of quads
	k.I("LSR $2, R4")
	k.repeat("R4", func() {
		k.I("MOVD R0, R6")
		k.I("MOVD R2, R7")
		for i, row := range []string{"R8", "R9", "R10"} {
			k.I("ADD R3, %s, %s", []string{"R7", "R8", "R9"}[i], row)
		}
		k.I("LSR $3, R5, R11")
		k.repeat("R11", func() {
			for i, row := range []string{"R7", "R8", "R9", "R10"} {
				k.VLoad(i, 16, 0, row)
				k.I("ADD $16, %s", row)
			}
			for half, name := range []string{"zip1.8h", "zip2.8h"} {
				k.V(name, 4+half, 0, 1)
				k.V(name, 6+half, 2, 3)
			}
			for half := range 2 {
				k.V("zip1", 2*half, 4+half, 6+half)
				k.V("zip2", 2*half+1, 4+half, 6+half)
			}
			k.store4(0, "R6")
			k.I("ADD $64, R6")
		})
		k.I("ADD R1, R0")
		k.I("ADD R3<<2, R2")
	})
	k.Ret()
}

// quadsTranspose transposes quads of 16 rows, two quads of each row at a time: a register of the result holds those of
// two rows.
func quadsTranspose(f *asmgen.File) {
	k := neon{f.Func("transposeBFMMLA", "is kernels.transpose for 16 rows; cols is a positive multiple of 4.",
		"dst, src *float32, ld, cols int")}
	k.args("dst", "src", "ld:4", "cols")
	k.I("LSR $2, R3")
	k.repeat("R3", func() {
		k.I("MOVD R1, R4")
		for row := 0; row < 16; row += 2 {
			for i := range 2 {
				k.VLoad(i, 16, 0, "R4")
				k.I("ADD R2, R4")
			}
			for q, name := range []string{"zip1.2d", "zip2.2d"} {
				k.V(name, 2+q, 0, 1)
				k.VStore(2+q, 16, 2*neonRow*q+8*row, "R0")
			}
		}
		k.I("ADD $16, R1")
		k.I("ADD $%d, R0", 4*neonRow)
	})
	k.Ret()
}

// narrow rounds four registers from x on to BF16, into two from d on.
func (k neon) narrow(d, x int) {
	for half := range 2 {
		k.V("bfcvtn", d+half, x+2*half)
		k.V("bfcvtn2", d+half, x+2*half+1)
	}
}

// powersToQuads writes the powers of four rows of scores, from R0 on, in 16 quads to R6, and adds them to the sums
// before they are rounded; negative maxima are in registers from top on. It works on four columns at a time, and keeps
// their quads until all rows are read, because quads replace scores. Of 106 instructions for a row 100 take vector
// pipes: 23 for each four powers and their sum, and 8 to round and zip.
func (k neon) powersToQuads(top, sum, scale int) {
	const x, kept, temp = 8, 12, 28
	for u := range 4 {
		for r := range 4 {
			k.VLoad(temp+r, 16, neonRow*r+16*u, "R0")
			k.VCopy(x+r, top+u)
		}
		for r := range 4 {
			k.V("fmla", x+r, temp+r, scale)
		}
		for r := range 4 {
			k.power(x+r, temp)
			k.V("fadd", sum+u, sum+u, x+r)
		}
		for i := range 2 { // rows i and i+2 in one register
			k.V("bfcvtn", temp+i, x+i)
			k.V("bfcvtn2", temp+i, x+i+2)
		}
		k.V("zip1.8h", temp+2, temp, temp+1) // words of rows 0 and 1
		k.V("zip2.8h", temp+3, temp, temp+1) // of rows 2 and 3
		to := kept + 2*u
		if u == 3 {
			to = x
		}
		k.V("zip1", to, temp+2, temp+3)
		k.V("zip2", to+1, temp+2, temp+3)
	}
	for u := range 3 {
		k.VStorePair(kept+2*u, kept+2*u+1, 32*u, "R6")
	}
	k.VStorePair(x, x+1, 96, "R6")
	k.I("ADD $%d, R0", 4*neonRow)
	k.I("ADD $%d, R6", 2*neonRow)
}
