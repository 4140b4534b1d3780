package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// A neonFew writes a kernel of type few (few.go). All kernels read 64 bytes, a cache line, of eight rows of b before
// they turn to the next eight, because rows a power of two apart share a few sets of the first-level cache. Of these
// lines they read 16 bytes of each row at a time, so that eight sums, or two, do not wait for each other.
//
// General registers: R0 to R15 point to the rows of b, R16 to a, and R17 to the memory to prefetch; R19 counts the
// steps left, and R20 to R26 are scratch.
type neonFew struct {
	*asmgen.Func
	rows, cols int
	constant   func(*asmgen.Func)
	piece      int                    // bytes of a row of b that multiply takes, at most 16
	advance    int                    // bytes of a that go with them
	multiply   func(first, piece int) // multiplies by a piece of eight rows of b, from row first on
	finish     func()                 // combines the sums of four columns of a row in one register …
	sum        func(row, col int) int // … and sum returns that register
}

const neonFewCols = 8 // rows of b that are read together

func newNeonFew(f *asmgen.File, name string, rows, cols int) *neonFew {
	return &neonFew{rows: rows, cols: cols, constant: nothing,
		Func: f.Func(fmt.Sprintf("few%sx%d", name, rows),
			fmt.Sprintf("is a kernel of type few for %d rows and %d columns.", rows, cols),
			"c, a *float32, rows int, b unsafe.Pointer, ldb, steps, add int, next uintptr, spare *float32")}
}

// write writes the kernel; sums is the number of registers of sums, size that of an element of b in bytes.
func (k *neonFew) write(sums, size int) {
	k.Arg("b", "R0")
	k.Arg("ldb", "R20")
	k.I("LSL $%d, R20", log2(size))
	for j := 1; j < k.cols; j++ {
		k.I("ADD R20, R%d, R%d", j-1, j)
	}
	k.Arg("a", "R16")
	k.Arg("next", "R17")
	k.Arg("steps", "R19")
	for i := range sums {
		k.VClear(i)
	}
	k.constant(k.Func)
	tail, store := k.NewLabel("tail"), k.NewLabel("store")
	k.I("SUBS $4, R19")
	k.I("BLT %s", tail)
	k.loop(4, "BGE")
	k.Label(tail)
	k.I("ADDS $4, R19")
	k.I("BEQ %s", store)
	k.loop(1, "BNE")
	k.Label(store)
	k.finish()
	k.store()
}

// loop writes a loop over that many steps of 16 bytes, which continues while the condition of jump holds.
func (k *neonFew) loop(steps int, jump string) {
	loop := k.NewLabel("loop")
	k.I("PCALIGN $32")
	k.Label(loop)
	pieces := 16 * steps / k.piece
	for first := 0; first < k.cols; first += neonFewCols {
		for p := range pieces {
			if p*k.piece%16 == 0 {
				for range neonFewCols / 4 { // a line for every 64 bytes of b
					k.I("PRFM (R17), PLDL1KEEP")
					k.I("ADD $64, R17")
				}
			}
			k.multiply(first, p)
		}
	}
	for j := range k.cols {
		k.I("ADD $%d, R%d", 16*steps, j)
	}
	k.I("ADD $%d, R16", pieces*k.advance)
	k.I("SUBS $%d, R19", steps)
	k.I("%s %s", jump, loop)
}

// store writes the end of the kernel.
func (k *neonFew) store() {
	plain := k.NewLabel("plain")
	k.Arg("c", "R20")
	for _, add := range []bool{true, false} {
		if add {
			k.Arg("add", "R21")
			k.I("CBZ R21, %s", plain)
		}
		for i := range k.rows {
			for j := 0; j < k.cols; j += 4 {
				offset := 4 * (32*i + j)
				sum := k.sum(i, j)
				if add {
					k.VLoad(31, 16, offset, "R20")
					k.V("fadd", sum, sum, 31)
				}
				k.VStore(sum, 16, offset, "R20")
			}
		}
		k.Ret()
		if add {
			k.Label(plain)
		}
	}
}

// neonFewRows writes the kernel of 4 rows and 16 columns or of 8 rows and 8 columns by FMLA. A register of sums holds
// four rows of a column: the words of b need not be transposed, because FMLA takes any lane of them as its factor.
//
// For 64 bytes of b in FP32 4 rows take 16 FMLA and 5 loads, which is 4 cycles on four pipes; in BF16 32 FMLA and 8
// widenings, 10 cycles. 8 rows take twice the FMLA.
func neonFewRows(f *asmgen.File, l neonLoader, rows int) {
	const sums, a, x = 16, 16, 24
	quads := rows / 4
	k := newNeonFew(f, l.name+"NEON", rows, sums/quads)
	k.constant, k.piece, k.advance = l.consts, l.bytes(), 16*rows
	k.multiply = func(first, piece int) {
		for v := 0; v < rows; v += 2 {
			k.VLoadPair(a+v, a+v+1, 16*rows*piece+16*v, "R16")
		}
		for j := first; j < first+neonFewCols; j++ {
			k.VLoad(x, k.piece, piece*k.piece, fmt.Sprintf("R%d", j))
			l.widen(k.Func, x, x+1)
			for word := range 4 {
				for q := range quads {
					k.VLane("fmla", quads*j+q, a+quads*word+q, x, word)
				}
			}
		}
	}
	k.finish = func() {
		for j := 0; j < k.cols; j += 4 {
			for q := range quads {
				neonTranspose(k.Func, quads*j+q, quads, a)
			}
		}
	}
	k.sum = func(row, col int) int { return quads*(col+row%4) + row/4 }
	k.write(sums, l.size)
}

// neonFewRow writes the kernel of one row and 16 columns by FMLA. A register of sums holds four columns, so that the
// words of four rows of b are transposed: 8 instructions and 4 FMLA for 64 bytes of b in FP32, which is 3 cycles on
// four pipes. In BF16 pairs are transposed, then separated and widened: 8 + 8 + 8 FMLA, 6 cycles.
func neonFewRow(f *asmgen.File, l neonLoader) {
	const a, x, temp = 4, 8, 16
	k := newNeonFew(f, l.name+"NEON", 1, 16)
	narrow := l.size == 2
	words := 16 / l.size
	k.constant, k.piece, k.advance = l.consts, 16, 4*words
	if narrow {
		k.constant = neonRounded.consts // the upper half is an element
	}
	k.multiply = func(first, piece int) {
		for v := range words / 4 {
			k.VLoad(a+v, 16, 4*words*piece+16*v, "R16")
		}
		for j := range neonFewCols {
			k.VLoad(x+j, 16, 16*piece, fmt.Sprintf("R%d", first+j))
			if !narrow {
				l.widen(k.Func, x+j, temp)
			}
		}
		for q := 0; q < neonFewCols; q += 4 {
			neonTranspose(k.Func, x+q, 1, temp)
		}
		for word := range words {
			for q := 0; q < neonFewCols; q += 4 {
				from := x + q + word*4/words
				switch {
				case narrow && word%2 == 0:
					k.VShift("shl", temp, from, 16)
					from = temp
				case narrow:
					k.V("and", temp, from, neonUpper)
					from = temp
				}
				k.VLane("fmla", (first+q)/4, from, a+word/4, word%4)
			}
		}
	}
	k.finish, k.sum = func() {}, func(_, col int) int { return col / 4 }
	k.write(4, l.size)
}

// neonFewQuads writes a kernel by BFMMLA, which adds to the 2×2 sums of a register the products of two rows of a and
// two of b over four steps along k. A single row of a is multiplied twice.
//
// For 64 bytes of b in BF16 one row takes 5 instructions that combine rows and 4 BFMMLA, which is 2¼ cycles on four
// pipes; 4 rows take 4 + 8, 3 cycles, and 8 rows 4 + 16, 5 cycles.
func neonFewQuads(f *asmgen.File, l quadLoader, rows int) {
	const a, x, temp = 16, 24, 26
	pairs, cols := (rows+1)/2, 16
	if rows == 8 {
		cols = 8
	}
	k := newNeonFew(f, l.name, rows, cols)
	quads := 4 / l.size // per piece
	k.piece, k.advance = 16, 8*rows*quads
	k.multiply = func(first, piece int) {
		for q := range quads {
			from := 8 * rows * (quads*piece + q)
			if rows == 1 {
				k.VLoad(a+q, 8, from, "R16")
				k.V("zip1.2d", a+q, a+q, a+q)
				continue
			}
			for pair := range pairs {
				k.VLoad(a+pairs*q+pair, 16, from+16*pair, "R16")
			}
		}
		for j := first; j < first+neonFewCols; j += 2 {
			l.pair(k.Func, x, temp, 16*piece, fmt.Sprintf("R%d", j), fmt.Sprintf("R%d", j+1))
			for q := range quads {
				for pair := range pairs {
					k.V("bfmmla", pairs*j/2+pair, a+pairs*q+pair, x+q)
				}
			}
		}
	}
	k.finish = func() {
		for j := 0; j < cols; j += 4 {
			for pair := range pairs {
				low, high := pairs*j/2+pair, pairs*(j/2+1)+pair
				k.VCopy(temp, low)
				k.V("zip1.2d", low, temp, high)
				if rows > 1 {
					k.V("zip2.2d", high, temp, high)
				}
			}
		}
	}
	k.sum = func(row, col int) int { return pairs*(col/2+row%2) + row/2 }
	k.write(8*pairs*cols/16, l.size)
}
