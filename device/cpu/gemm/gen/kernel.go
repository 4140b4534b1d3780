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
	var part *parts
	cols := 2 * v.bytes / v.size
	k := tileKernel{rows: rows, form: form, bBytes: v.size * tileCols, cBytes: 32}
	if v.height > 0 {
		part = &parts{rows, min(rows, v.height), 2 * v.bytes}
		k.rows, k.bBytes, k.cBytes, cols = part.height, part.width, 16, tileCols
	}
	visit := cols == tileCols
	fn := f.Func(fmt.Sprintf("kernel%s%s%dx%d", form, v.name, rows, cols),
		fmt.Sprintf("is a kernel of %d rows and %d columns.", rows, cols), kernelParams(v, visit))
	k.inputs = newInputs(fn, v, visit, part)
	k.start()
	k.multiply()
	k.finish()
	k.next(form)
	k.Ret()
}

// A tileKernel is a kernel that is being written. R8 points to a, or to its first three rows and the registers after it
// to the others; R10, where columns are prefetched, to a further down. DX holds the stride of a, BX points to b, CX
// counts k; DI, R12 and R13 point to what is prefetched.
type tileKernel struct {
	*inputs
	rows           int // of the register tile
	form           string
	bBytes, cBytes int      // of a row of b, and prefetched of c in 4 steps of k
	pointers       []string // to the rows of a, three each
}

// start loads the inputs and clears the sums.
func (k *tileKernel) start() {
	k.load("a", "R8")
	k.load("lda", "DX")
	k.load("b", "BX")
	k.load("k", "CX")
	k.pointers = []string{"R8"}
	if k.form == byRows {
		k.I("LEAQ (DX)(DX*2), R12") // three rows of a
		for i := 3; i < k.rows; i += 3 {
			p := fmt.Sprintf("R%d", 8+i/3)
			k.I("LEAQ (%s)(R12*1), %s", k.pointers[len(k.pointers)-1], p)
			k.pointers = append(k.pointers, p)
		}
	} else {
		k.I("LEAQ (DX)(DX*2), R9") // three rows of a
		if k.ahead > 0 {
			k.I("LEAQ (R8)(DX*%d), R10", k.ahead)
		}
	}
	k.load("c", "DI")
	k.load("next", "R12")
	k.load("later", "R13")
	for i := range 2 * k.rows {
		k.I("VXORPS %[1]s%[2]d, %[1]s%[2]d, %[1]s%[2]d", k.reg, i)
	}
}

// multiply adds the products of all words along k to the sums.
func (k *tileKernel) multiply() {
	const unroll = 4
	loop, tail, single, done := k.NewLabel("loop"), k.NewLabel("tail"), k.NewLabel("single"), k.NewLabel("done")
	k.I("SUBQ $%d, CX", unroll)
	k.I("JLT %s", tail)
	k.I("PCALIGN $32")
	k.Label(loop)
	for u := range unroll {
		k.prefetch(u)
		k.step(u)
		switch u {
		case 0: // 12×32 sums use the 48 iterations of a long K block
			k.I("PREFETCHT0 (DI)")
			k.I("ADDQ $%d, DI", k.cBytes)
		case 1:
			k.I("PREFETCHT1 (R12)")
			k.I("ADDQ %s, R12", k.operand("step"))
		case 3:
			k.I("PREFETCHT1 (R13)")
			k.I("ADDQ %s, R13", k.operand("stride"))
		}
	}
	k.advance(unroll)
	k.I("SUBQ $%d, CX", unroll)
	k.I("JGE %s", loop)
	k.Label(tail)
	k.I("ADDQ $%d, CX", unroll)
	k.I("JZ %s", done)
	k.Label(single)
	k.step(0)
	k.advance(1)
	k.I("SUBQ $1, CX")
	k.I("JNZ %s", single)
	k.Label(done)
}

// wordA returns the address of word (i, p+u) of a.
func (k *tileKernel) wordA(i, u int) string {
	if k.form == byRows {
		return fmt.Sprintf("%d(%s)%s", k.size*u, k.pointers[i/3], strides[i%3])
	}
	return fmt.Sprintf("%d(R8)%s", k.size*i, strides[u])
}

// strides are the operands for u rows of a.
var strides = []string{"", "(DX*1)", "(DX*2)", "(R9*1)"}

// rowB returns the address of a vector of row p+u of b.
func (k *tileKernel) rowB(u, half int) string { return fmt.Sprintf("%d(BX)", u*k.bBytes+half*k.bytes) }

// step multiplies word p+u of all rows.
func (k *tileKernel) step(u int) {
	b0 := 2 * k.rows
	b1, spare := b0+1, b0+2
	spares := map[string]int{"Y": 16, "Z": 32}[k.reg] - spare
	k.I("VMOVU%s %s, %s%d", k.packed, k.rowB(u, 0), k.reg, b0)
	k.I("VMOVU%s %s, %s%d", k.packed, k.rowB(u, 1), k.reg, b1)
	for i := range k.rows {
		x := spare + i%spares
		k.I("VBROADCAST%s %s, %s%d", k.scalar, k.wordA(i, u), k.reg, x)
		k.fma(k.Func, b0, x, 2*i)
		k.fma(k.Func, b1, x, 2*i+1)
	}
}

// prefetch prefetches what a later step reads of both panels.
func (k *tileKernel) prefetch(u int) {
	if k.ahead == 0 {
		return
	}
	for line := 0; line < k.bBytes; line += 64 {
		k.I("PREFETCHT0 %s", k.rowB(u+k.ahead, line/k.bytes))
	}
	if k.form == byCols { // the line of the last word; earlier blocks have read the first word's line
		k.I("PREFETCHT0 %d(R10)%s", k.size*(k.rows-1), strides[u])
	}
}

// advance goes on by n words along k.
func (k *tileKernel) advance(n int) {
	if k.form == byRows {
		for _, p := range k.pointers {
			k.I("ADDQ $%d, %s", k.size*n, p)
		}
	} else {
		k.I("LEAQ (R8)(DX*%d), R8", n)
		if k.ahead > 0 {
			k.I("LEAQ (R10)(DX*%d), R10", n)
		}
	}
	k.I("ADDQ $%d, BX", n*k.bBytes)
}

// finish adds the sums of c and the old result, if requested, in this order, and stores the result.
func (k *tileKernel) finish() {
	plain, store := k.NewLabel("plain"), k.NewLabel("store")
	k.load("add", "CX")
	k.I("TESTQ $1, CX")
	k.I("JEQ %s", plain)
	k.load("c", "DI")
	k.each("DI", fmt.Sprintf("$%d", k.size*tileCols), func(half, reg int) {
		k.I("VADD%[1]s %[2]d(DI), %[3]s%[4]d, %[3]s%[4]d", k.packed, half*k.bytes, k.reg, reg)
	})
	k.Label(plain)
	k.load("to", "DI")
	k.load("ld", "R13")
	k.I("TESTQ $2, CX")
	k.I("JEQ %s", store)
	k.I("MOVQ DI, BX")
	k.each("BX", "R13", func(half, reg int) {
		k.I("VADD%[1]s %[2]d(BX), %[3]s%[4]d, %[3]s%[4]d", k.packed, half*k.bytes, k.reg, reg)
	})
	k.Label(store)
	k.each("DI", "R13", func(half, reg int) { k.I("VMOVU%s %s%d, %d(DI)", k.packed, k.reg, reg, half*k.bytes) })
}

// each calls f for the halves of all rows, with p pointing to the row.
func (k *tileKernel) each(p, pitch string, f func(half, reg int)) {
	for i := range k.rows {
		f(0, 2*i)
		f(1, 2*i+1)
		if i < k.rows-1 {
			k.I("ADDQ %s, %s", pitch, p)
		}
	}
}
