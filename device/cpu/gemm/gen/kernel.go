package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// A vector is an instruction set for kernels: register name and size, the format of its lanes, and how to multiply and
// add.
type vector struct {
	name  string
	reg   string
	bytes int
	lane
	fma   func(fn *asmgen.Func, b, a, c int)
	ahead int // steps along k by which kernels prefetch their panels, or 0

	height int // rows of register tiles that are parts of the tiles of a visit, or 0
}

// A lane is an element of a vector: its type in Go, its size, and how instructions name it, packed and scalar.
type lane struct {
	elem           string
	size           int
	packed, scalar string
}

var (
	lane32 = lane{"float32", 4, "PS", "SS"}
	lane64 = lane{"float64", 8, "PD", "SD"}

	avx2      = vector{"AVX2", "Y", 32, lane32, fmaOn("PS", "Y"), 0, 6}
	avx512    = vector{"AVX512", "Z", 64, lane32, fmaOn("PS", "Z"), 8, 0}
	dot       = vector{"Dot", "Z", 64, lane32, (*asmgen.Func).VDPBF16PS, 0, 0}
	avx2F64   = vector{"F64AVX2", "Y", 32, lane64, fmaOn("PD", "Y"), 0, 0}
	avx512F64 = vector{"F64AVX512", "Z", 64, lane64, fmaOn("PD", "Z"), 0, 0}
)

func fmaOn(packed, reg string) func(fn *asmgen.Func, b, a, c int) {
	return func(fn *asmgen.Func, b, a, c int) {
		fn.I("VFMADD231%[1]s %[2]s%[3]d, %[2]s%[4]d, %[2]s%[5]d", packed, reg, b, a, c)
	}
}

// The layouts of the words of a that a kernel broadcasts: along rows, or down columns.
const (
	byRows = "Rows"
	byCols = "Cols"
)

// kernel writes a kernel of rows × two vectors. The sums are registers 0 … 2·rows−1. If two vectors are all columns of
// a tile, or v divides tiles into parts, the function is a column, which computes all tiles of a visit.
//
// A step along k loads two vectors of b, and for each row broadcasts one word of a and does two FMAs with it. With 12
// rows that is 14 loads for 24 FMAs, which two load and two FMA ports do in 12 cycles; with 6 rows, 8 for 12 in 6.
//
// A panel of b of 24 KB and the columns of a that follow each other in memory, 36 KB, are more than a first-level cache
// of 32 KB. Kernels whose FMAs would wait for the second level therefore prefetch both, v.ahead steps before they are
// read. Rows of a are streams that the CPU prefetches itself.
func kernel(f *asmgen.File, v vector, rows int, form string) {
	const unroll = 4
	rowBytes := v.size * tileCols
	cols := 2 * v.bytes / v.size
	bBytes, cBytes := rowBytes, 32 // of a row of b, and prefetched of c in 4 steps of k
	var part *parts
	if v.height > 0 {
		part = &parts{rows, min(rows, v.height), 2 * v.bytes}
		bBytes, cBytes, cols = part.width, 16, tileCols
	}
	visit := cols == tileCols
	fn := f.Func(fmt.Sprintf("kernel%s%s%dx%d", form, v.name, rows, cols),
		fmt.Sprintf("is a kernel of %d rows and %d columns.", rows, cols), kernelParams(v, visit))
	if part != nil {
		rows = part.height
	}
	b0 := 2 * rows
	b1, spare := b0+1, b0+2
	spares := map[string]int{"Y": 16, "Z": 32}[v.reg] - spare

	in := newInputs(fn, v, visit, part)
	in.load("a", "R8")
	in.load("lda", "DX")
	in.load("b", "BX")
	in.load("k", "CX")
	pointers := []string{"R8"}
	if form == byRows {
		fn.I("LEAQ (DX)(DX*2), R12") // three rows of a
		for i := 3; i < rows; i += 3 {
			p := fmt.Sprintf("R%d", 8+i/3)
			fn.I("LEAQ (%s)(R12*1), %s", pointers[len(pointers)-1], p)
			pointers = append(pointers, p)
		}
	} else {
		fn.I("LEAQ (DX)(DX*2), R9") // three rows of a
		if v.ahead > 0 {
			fn.I("LEAQ (R8)(DX*%d), R10", v.ahead)
		}
	}
	in.load("c", "DI")
	in.load("next", "R12")
	in.load("later", "R13")
	for i := range 2 * rows {
		fn.I("VXORPS %[1]s%[2]d, %[1]s%[2]d, %[1]s%[2]d", v.reg, i)
	}

	// The address of word (i, p+u) of a, and of row p+u of b.
	down := []string{"", "(DX*1)", "(DX*2)", "(R9*1)"} // u rows
	wordA := func(i, u int) string {
		if form == byRows {
			return fmt.Sprintf("%d(%s)%s", v.size*u, pointers[i/3], down[i%3])
		}
		return fmt.Sprintf("%d(R8)%s", v.size*i, down[u])
	}
	rowB := func(u, half int) string {
		return fmt.Sprintf("%d(BX)", u*bBytes+half*v.bytes)
	}
	prefetch := func(u int) {
		if v.ahead == 0 {
			return
		}
		for line := 0; line < rowBytes; line += 64 {
			fn.I("PREFETCHT0 %s", rowB(u+v.ahead, line/v.bytes))
		}
		if form == byCols { // the line of the last word; earlier blocks have read the first word's line
			fn.I("PREFETCHT0 %d(R10)%s", v.size*(rows-1), down[u])
		}
	}
	step := func(u int) {
		fn.I("VMOVU%s %s, %s%d", v.packed, rowB(u, 0), v.reg, b0)
		fn.I("VMOVU%s %s, %s%d", v.packed, rowB(u, 1), v.reg, b1)
		for i := range rows {
			x := spare + i%spares
			fn.I("VBROADCAST%s %s, %s%d", v.scalar, wordA(i, u), v.reg, x)
			v.fma(fn, b0, x, 2*i)
			v.fma(fn, b1, x, 2*i+1)
		}
	}
	advance := func(n int) {
		if form == byRows {
			for _, p := range pointers {
				fn.I("ADDQ $%d, %s", v.size*n, p)
			}
		} else {
			fn.I("LEAQ (R8)(DX*%d), R8", n)
			if v.ahead > 0 {
				fn.I("LEAQ (R10)(DX*%d), R10", n)
			}
		}
		fn.I("ADDQ $%d, BX", n*bBytes)
	}

	loop, tail, single, done := fn.NewLabel("loop"), fn.NewLabel("tail"), fn.NewLabel("single"), fn.NewLabel("done")
	fn.I("SUBQ $%d, CX", unroll)
	fn.I("JLT %s", tail)
	fn.I("PCALIGN $32")
	fn.Label(loop)
	for u := range unroll {
		prefetch(u)
		step(u)
		switch u {
		case 0: // 12×32 sums use the 48 iterations of a long K block
			fn.I("PREFETCHT0 (DI)")
			fn.I("ADDQ $%d, DI", cBytes)
		case 1:
			fn.I("PREFETCHT1 (R12)")
			fn.I("ADDQ %s, R12", in.operand("step"))
		case 3:
			fn.I("PREFETCHT1 (R13)")
			fn.I("ADDQ %s, R13", in.operand("stride"))
		}
	}
	advance(unroll)
	fn.I("SUBQ $%d, CX", unroll)
	fn.I("JGE %s", loop)
	fn.Label(tail)
	fn.I("ADDQ $%d, CX", unroll)
	fn.I("JZ %s", done)
	fn.Label(single)
	step(0)
	advance(1)
	fn.I("SUBQ $1, CX")
	fn.I("JNZ %s", single)
	fn.Label(done)

	// Adds the sums of c and the old result, if requested, in this order.
	each := func(p, pitch string, f func(half, reg int)) {
		for i := range rows {
			f(0, 2*i)
			f(1, 2*i+1)
			if i < rows-1 {
				fn.I("ADDQ %s, %s", pitch, p)
			}
		}
	}
	plain, store := fn.NewLabel("plain"), fn.NewLabel("store")
	in.load("add", "CX")
	fn.I("TESTQ $1, CX")
	fn.I("JEQ %s", plain)
	in.load("c", "DI")
	each("DI", fmt.Sprintf("$%d", rowBytes), func(half, reg int) {
		fn.I("VADD%[1]s %[2]d(DI), %[3]s%[4]d, %[3]s%[4]d", v.packed, half*v.bytes, v.reg, reg)
	})
	fn.Label(plain)
	in.load("to", "DI")
	in.load("ld", "R13")
	fn.I("TESTQ $2, CX")
	fn.I("JEQ %s", store)
	fn.I("MOVQ DI, BX")
	each("BX", "R13", func(half, reg int) {
		fn.I("VADD%[1]s %[2]d(BX), %[3]s%[4]d, %[3]s%[4]d", v.packed, half*v.bytes, v.reg, reg)
	})
	fn.Label(store)
	each("DI", "R13", func(half, reg int) { fn.I("VMOVU%s %s%d, %d(DI)", v.packed, v.reg, reg, half*v.bytes) })
	in.next(form)
	fn.Ret()
}
