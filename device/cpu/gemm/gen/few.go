package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// fewCols is the number of rows of b that a kernel reads together. With 32, reading from memory is 8 to 20 % slower.
const fewCols = 16

// few writes a kernel for products of few rows: rows × fewCols, as described at type few in few.go, in vectors
// (groups), that prefetches to a level of the cache. Four rows of b are loaded into each register, 16 bytes a 128-bit
// lane, so that shuffles within lanes transpose them; in vector p of the result, column c is word p of row c.
//
// The main loop reads 64 bytes of every row, in four pieces of 16 bytes, from all rows of a group before it turns to
// the next group. Rows that are a power of two apart share a few sets of the first-level cache, which would otherwise
// evict their lines between two pieces. With AVX-512 all pieces of a group are in registers at once, so that each line
// is touched once. A second loop reads the rest of k, 16 bytes at a time.
//
// Registers with AVX-512: sums 0 to 7, pieces 8 to 23, scratch 24 and 25, constants from 26 on; with AVX2 sums 0 to 7,
// a piece 8 to 11, scratch 12 to 15.
func few(f *asmgen.File, v vector, rows int, l loader, level int) {
	lanes := v.bytes / 4
	groups := fewCols / lanes
	k := &fewKernel{
		v: v, l: l, rows: rows, groups: groups, quads: lanes / 4, level: level,
		Func: f.Func(fmt.Sprintf("few%s%sx%dL%d", l.name, v.name, rows, level), fmt.Sprintf(
			"is a kernel of type few for %d rows and %d columns that prefetches to level %d.", rows, fewCols, level),
			"c, a *float32, rows int, b unsafe.Pointer, ldb, steps, add int, next uintptr, spare *float32"),
	}
	if v.reg == "Z" {
		l.consts(k.Func)
		if l.name == f32Pair.name {
			k.I("VMOVDQU16 ·paired(SB), Z28")
		}
	}
	k.Arg("ldb", "DX")
	k.I("SHLQ $%d, DX", log2(l.size))
	k.I("LEAQ (DX)(DX*2), AX")
	k.pointers = []string{"SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13"}[:groups*k.quads]
	k.Arg("b", k.pointers[0])
	for i, p := range k.pointers[1:] {
		k.I("LEAQ (%s)(DX*4), %s", k.pointers[i], p)
	}
	k.Arg("a", "BX")
	k.Arg("next", "CX")
	for i := range groups * rows {
		k.I("VXORPS %[1]s, %[1]s, %[1]s", k.reg(i))
	}
	tail, store := k.NewLabel("tail"), k.NewLabel("store")
	k.I("SUBQ $4, %s", k.ArgRef("steps"))
	k.I("JLT %s", tail)
	k.loop(4, "JGE")
	k.Label(tail)
	k.I("ADDQ $4, %s", k.ArgRef("steps"))
	k.I("JEQ %s", store)
	k.loop(1, "JNE")
	k.Label(store)
	k.store()
}

// A fewKernel is a kernel of type few that is being written.
type fewKernel struct {
	*asmgen.Func
	v            vector
	l            loader
	rows, groups int
	quads        int      // groups of four rows of b in a vector
	level        int      // of the cache that it prefetches to
	pointers     []string // to the first row of each
}

func (k *fewKernel) reg(i int) string       { return fmt.Sprintf("%s%d", k.v.reg, i) }
func (k *fewKernel) sum(row, group int) int { return k.groups*row + group }
func (k *fewKernel) scratch() int {
	if k.v.reg == "Z" {
		return 24
	}
	return 12
}

// loop writes a loop over that many pieces of 16 bytes at a time. It counts steps down, and continues while the
// condition of jump holds.
func (k *fewKernel) loop(pieces int, jump string) {
	const first = 8 // register of the pieces
	loop := k.NewLabel("loop")
	k.I("PCALIGN $32")
	k.Label(loop)
	ahead := 0
	for g := range k.groups {
		if k.v.reg == "Z" {
			for j := range 4 {
				for q := range k.quads {
					for piece := range pieces {
						k.loadRow(g, j, q, piece, first+4*piece+j)
					}
				}
			}
		}
		for piece := range pieces {
			for range k.quads {
				k.I("PREFETCHT%d %d(CX)", k.level-1, 64*ahead)
				ahead++
			}
			x := first
			if k.v.reg == "Z" {
				x += 4 * piece
			} else {
				for j := range 4 {
					for q := range k.quads {
						k.loadRow(g, j, q, piece, x+j)
					}
				}
			}
			word := piece * k.l.perPiece()
			k.l.words(k.Func, k.v, k.transpose(x), k.scratch(), func(x, spare int) {
				for i := range k.rows {
					k.v.broadcastFMA(k.Func, fmt.Sprintf("%d(BX)", 4*(word*k.rows+i)), x, k.sum(i, g), spare)
				}
				word++
			})
		}
	}
	for _, p := range k.pointers {
		k.I("ADDQ $%d, %s", 16*pieces, p)
	}
	k.I("ADDQ $%d, BX", 4*pieces*k.l.perPiece()*k.rows)
	k.I("ADDQ $%d, CX", 64*ahead)
	k.I("SUBQ $%d, %s", pieces, k.ArgRef("steps"))
	k.I("%s %s", jump, loop)
}

// loadRow loads 16 bytes of row j of quad q of a group into lane q of register x.
func (k *fewKernel) loadRow(group, j, q, piece, x int) {
	at := fmt.Sprintf("%d(%s)%s", 16*piece, k.pointers[group*k.quads+q], []string{"", "(DX*1)", "(DX*2)", "(AX*1)"}[j])
	switch {
	case q == 0:
		k.I("VMOVUPS %s, X%d", at, x)
	case k.v.reg == "Z":
		k.I("VINSERTF32X4 $%d, %s, Z%d, Z%[3]d", q, at, x)
	default:
		k.I("VINSERTF128 $%d, %s, Y%d, Y%[3]d", q, at, x)
	}
}

// transpose transposes the 4×4 words of each lane of the registers from x on, and returns the registers of words 0 to
// 3. It uses two registers of scratch.
func (k *fewKernel) transpose(x int) (words [4]int) {
	low, high := k.scratch(), k.scratch()+1
	op := func(name string, a, b, to int) { k.I("%s %s, %s, %s", name, k.reg(b), k.reg(a), k.reg(to)) }
	op("VUNPCKLPS", x, x+1, low)
	op("VUNPCKHPS", x, x+1, high)
	op("VUNPCKLPS", x+2, x+3, x)
	op("VUNPCKHPS", x+2, x+3, x+1)
	op("VUNPCKLPD", low, x, x+2)
	op("VUNPCKHPD", low, x, x+3)
	op("VUNPCKLPD", high, x+1, x)
	op("VUNPCKHPD", high, x+1, x+1)
	return [4]int{x + 2, x + 3, x, x + 1}
}

// store writes the end of the kernel.
func (k *fewKernel) store() {
	end := k.NewLabel("end")
	k.Arg("c", "DI")
	k.I("CMPQ %s, $0", k.ArgRef("add"))
	k.I("JEQ %s", end)
	each := func(f func(offset, x int)) {
		for i := range k.rows {
			for g := range k.groups {
				f(4*32*i+k.v.bytes*g, k.sum(i, g))
			}
		}
	}
	each(func(offset, x int) { k.I("VADDPS %d(DI), %[2]s, %[2]s", offset, k.reg(x)) })
	k.Label(end)
	each(func(offset, x int) { k.I("VMOVUPS %s, %d(DI)", k.reg(x), offset) })
	k.Ret()
}

// broadcastFMA adds the product of x and the word at address a to register sum. spare is scratch if the instruction
// cannot read memory.
func (v vector) broadcastFMA(fn *asmgen.Func, a string, x, sum, spare int) {
	if v.name == avx512.name {
		fn.I("VFMADD231PS.BCST %s, Z%d, Z%d", a, x, sum)
		return
	}
	fn.I("VBROADCASTSS %s, %s%d", a, v.reg, spare)
	v.fma(fn, x, spare, sum)
}

// perPiece returns the words of a that go with 16 bytes of a row of b.
func (l loader) perPiece() int {
	switch l.name {
	case bf16.name:
		return 8
	case f32Pair.name:
		return 2
	}
	return 4
}

// words calls use for the words of k in four transposed registers x, in order, converted like the loader's loads. The
// registers from free on are scratch: two with AVX-512, four with AVX2.
func (l loader) words(fn *asmgen.Func, v vector, x [4]int, free int, use func(x, spare int)) {
	switch {
	case l.name == bf16.name: // two elements each
		for _, x := range x {
			fn.I("VPSLLD $16, %[1]s%[2]d, %[1]s%[3]d", v.reg, x, free)
			if v.reg == "Z" {
				fn.I("VPANDD Z27, Z%d, Z%d", x, free+1)
			} else {
				fn.I("VPAND ·rounding+64(SB), Y%d, Y%d", x, free+1)
			}
			use(free, free+2)
			use(free+1, free+2)
		}
	case l.name == f32Pair.name:
		for i := 0; i < 4; i += 2 {
			fn.VCVTNE2PS2BF16(x[i], x[i+1], free)
			fn.I("VPERMW Z%d, Z28, Z%[1]d", free)
			use(free, free+1)
		}
	default:
		for _, x := range x {
			switch {
			case l.name == f32Rounded.name && v.reg == "Z":
				round(fn, x, free)
				fn.I("VPANDD Z27, Z%d, Z%[1]d", free)
				use(free, free+1)
			case l.name == f32Rounded.name:
				roundAVX2(fn, x, free, free+1)
				use(free, free+1)
			default:
				use(x, free)
			}
		}
	}
}

// roundAVX2 rounds Y x to BF16, held in FP32, in Y to, like round.
func roundAVX2(fn *asmgen.Func, x, to, temp int) {
	fn.I("VPSRLD $16, Y%d, Y%d", x, to)
	fn.I("VPAND ·rounding+0(SB), Y%d, Y%[1]d", to)   // 1 if the last bit is odd
	fn.I("VPADDD ·rounding+32(SB), Y%d, Y%[1]d", to) // 0x7fff
	fn.I("VPADDD Y%d, Y%d, Y%[2]d", x, to)
	fn.I("VPAND ·rounding+64(SB), Y%d, Y%[1]d", to)   // the upper half
	fn.I("VCMPPS $3, Y%d, Y%[1]d, Y%d", x, temp)      // NaN
	fn.I("VPAND ·rounding+96(SB), Y%d, Y%[1]d", temp) // quiet
	fn.I("VPOR Y%d, Y%d, Y%[2]d", temp, to)
}
