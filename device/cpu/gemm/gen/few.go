package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// few writes a kernel for products of few rows: rows × two vectors of columns, as described at type few in few.go. A
// step reads 16 bytes of every row of b. Four rows are loaded into each register, one per 128-bit lane, so that
// shuffles within lanes transpose them; in vector p of the result, column c is word p of row c.
func few(f *asmgen.File, v vector, rows int, l loader) {
	groups := 2
	lanes := v.bytes / 4
	quads := lanes / 4 // groups of four rows in a vector, each with a pointer to its first row
	fn := f.Func(fmt.Sprintf("few%s%sx%d", l.name, v.name, rows),
		fmt.Sprintf("is a kernel of type few for %d rows and %d columns.", rows, groups*lanes),
		"c, a *float32, rows int, b unsafe.Pointer, ldb, steps, add int, next uintptr, spare *float32")
	reg := func(i int) string { return fmt.Sprintf("%s%d", v.reg, i) }
	sum := func(row, group int) int { return groups*row + group }
	const load, turned = 8, 12 // registers of four vectors each

	if v.reg == "Z" {
		l.consts(fn)
		if l.name == f32Pair.name {
			fn.I("VMOVDQU16 ·paired(SB), Z25")
		}
	}
	fn.Arg("ldb", "DX")
	fn.I("SHLQ $%d, DX", log2(l.size))
	fn.I("LEAQ (DX)(DX*2), AX")
	pointers := []string{"SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13"}[:groups*quads]
	fn.Arg("b", pointers[0])
	for i, p := range pointers[1:] {
		fn.I("LEAQ (%s)(DX*4), %s", pointers[i], p)
	}
	fn.Arg("a", "BX")
	fn.Arg("next", "CX")
	for i := range groups * rows {
		fn.I("VXORPS %[1]s, %[1]s, %[1]s", reg(i))
	}

	loop := fn.NewLabel("loop")
	fn.I("PCALIGN $32")
	fn.Label(loop)
	for line := range groups * lanes / 4 {
		fn.I("PREFETCHT1 %d(CX)", 64*line)
	}
	words := 0 // words of a used by the step so far
	for g := range groups {
		words = 0
		use := func(x, spare int) {
			for i := range rows {
				v.broadcastFMA(fn, fmt.Sprintf("%d(BX)", 4*(words*rows+i)), x, sum(i, g), spare)
			}
			words++
		}
		for j := range 4 {
			for q := range quads {
				at := fmt.Sprintf("(%s)%s", pointers[g*quads+q], []string{"", "(DX*1)", "(DX*2)", "(AX*1)"}[j])
				switch {
				case q == 0:
					fn.I("VMOVUPS %s, X%d", at, load+j)
				case v.reg == "Z":
					fn.I("VINSERTF32X4 $%d, %s, Z%d, Z%[3]d", q, at, load+j)
				default:
					fn.I("VINSERTF128 $%d, %s, Y%d, Y%[3]d", q, at, load+j)
				}
			}
		}
		for i, op := range []string{"VUNPCKLPS", "VUNPCKHPS"} {
			fn.I("%s %s, %s, %s", op, reg(load+1), reg(load), reg(turned+i))
			fn.I("%s %s, %s, %s", op, reg(load+3), reg(load+2), reg(turned+2+i))
		}
		for i := range 4 {
			fn.I("%s %s, %s, %s", []string{"VUNPCKLPD", "VUNPCKHPD"}[i%2], reg(turned+2+i/2),
				reg(turned+i/2), reg(load+i))
		}
		l.words(fn, v, load, turned, use)
	}
	for _, p := range pointers {
		fn.I("ADDQ $16, %s", p)
	}
	fn.I("ADDQ $%d, BX", 4*words*rows)
	fn.I("ADDQ $%d, CX", 16*groups*lanes)
	fn.I("DECQ %s", fn.ArgRef("steps"))
	fn.I("JNZ %s", loop)

	store := fn.NewLabel("store")
	fn.Arg("c", "DI")
	fn.I("CMPQ %s, $0", fn.ArgRef("add"))
	fn.I("JEQ %s", store)
	each := func(f func(offset, x int)) {
		for i := range rows {
			for g := range groups {
				f(4*32*i+v.bytes*g, sum(i, g))
			}
		}
	}
	each(func(offset, x int) { fn.I("VADDPS %d(DI), %[2]s, %[2]s", offset, reg(x)) })
	fn.Label(store)
	each(func(offset, x int) { fn.I("VMOVUPS %s, %d(DI)", reg(x), offset) })
	fn.Ret()
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

// words calls use for the words of k in the four transposed registers from x on, in order, converted like the
// loader's loads. The four registers from free on are scratch.
func (l loader) words(fn *asmgen.Func, v vector, x, free int, use func(x, spare int)) {
	switch {
	case l.name == bf16.name: // two elements each
		for i := range 4 {
			fn.I("VPSLLD $16, %[1]s%[2]d, %[1]s%[3]d", v.reg, x+i, free)
			if v.reg == "Z" {
				fn.I("VPANDD Z27, Z%d, Z%d", x+i, free+1)
			} else {
				fn.I("VPAND ·rounding+64(SB), Y%d, Y%d", x+i, free+1)
			}
			use(free, free+2)
			use(free+1, free+2)
		}
	case l.name == f32Pair.name:
		for i := 0; i < 4; i += 2 {
			fn.VCVTNE2PS2BF16(x+i, x+i+1, free)
			fn.I("VPERMW Z%d, Z25, Z%[1]d", free)
			use(free, free+1)
		}
	default:
		for i := range 4 {
			switch {
			case l.name == f32Rounded.name && v.reg == "Z":
				round(fn, x+i, free)
				fn.I("VPANDD Z27, Z%d, Z%[1]d", free)
				use(free, free+1)
			case l.name == f32Rounded.name:
				roundAVX2(fn, x+i, free, free+1)
				use(free, free+1)
			default:
				use(x+i, free)
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
