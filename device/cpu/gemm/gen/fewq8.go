package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// The layout of tensor.Q8: blocks of 32 columns of the product by 32 steps of k.
const (
	q8Block  = 32
	q8Scales = 2 * q8Block // bytes before the codes
	q8Bytes  = q8Scales + q8Block*q8Block
	q8Ahead  = 4096 // bytes by which memory is prefetched
)

// fewQ8 writes a kernel of type few for weights in Q8: ldb is at which k of the first block it begins, steps how many
// it takes, a multiple of 4. A code becomes a number by three instructions (widened, converted, multiplied by the scale
// of its column), after which there is nothing to transpose. Memory is read in order; without prefetching, one row of
// weights from memory takes twice as long.
//
// With AVX-512 and one row each step takes 8 instructions on the ports 0 and 5 for 32 bytes: 8 bytes a cycle. With AVX2
// and four rows there are registers for half of the columns, so that there are two passes.
//
// Registers: sums from 0 on, then scales, then values, then a broadcast with AVX2.
func fewQ8(f *asmgen.File, v vector, rows int) {
	lanes := v.bytes / 4
	passes := 1
	if v.reg == "Y" && rows > 1 {
		passes = 2
	}
	k := &q8Kernel{
		v: v, groups: q8Block / lanes / passes,
		Func: f.Func(fmt.Sprintf("fewQ8%sx%d", v.name, rows),
			fmt.Sprintf("is a kernel of type few for %d rows and %d columns of Q8.", rows, q8Block),
			"c, a *float32, rows int, b unsafe.Pointer, ldb, steps, add int, next uintptr, spare *float32"),
	}
	k.scale = k.groups * rows
	k.value = k.scale + k.groups
	for pass := range passes {
		k.Arg("a", "BX")
		k.start()
		for i := range k.groups * rows {
			k.I("VXORPS %[1]s, %[1]s, %[1]s", k.reg(i))
		}
		k.loop(pass, func(step int) {
			for i := range rows {
				a := fmt.Sprintf("%d(BX)", 4*(step*rows+i))
				if v.reg == "Y" {
					k.I("VBROADCASTSS %s, %s", a, k.reg(k.value+k.groups))
				}
				for g := range k.groups {
					x, sum := k.valueOf(step, g), k.groups*i+g
					if v.reg == "Y" {
						v.fma(k.Func, x, k.value+k.groups, sum)
					} else {
						k.I("VFMADD231PS.BCST %s, Z%d, Z%d", a, x, sum)
					}
				}
			}
		}, func() { k.I("ADDQ $%d, BX", 16*rows) })
		end := k.NewLabel("end")
		k.Arg("c", "DI")
		k.I("CMPQ %s, $0", k.ArgRef("add"))
		k.I("JEQ %s", end)
		each := func(use func(offset int, sum string)) {
			for i := range rows {
				for g := range k.groups {
					use(4*32*i+v.bytes*(pass*k.groups+g), k.reg(k.groups*i+g))
				}
			}
		}
		each(func(offset int, sum string) { k.I("VADDPS %d(DI), %s, %[2]s", offset, sum) })
		k.Label(end)
		each(func(offset int, sum string) { k.I("VMOVUPS %s, %d(DI)", sum, offset) })
	}
	k.Ret()
}

// unpackQ8 writes a function that widens weights in Q8 to rows of 32 numbers.
func unpackQ8(f *asmgen.File, v vector) {
	k := &q8Kernel{
		v: v, groups: q8Block * 4 / v.bytes,
		Func: f.Func("unpackQ8"+v.name,
			"widens steps of k of 32 columns, from step ldb of block b on, to rows of dst, ldd numbers apart.",
			"dst *float32, ldd int, b unsafe.Pointer, ldb, steps int"),
	}
	k.value = k.groups
	k.Arg("dst", "BX")
	k.Arg("ldd", "R9")
	k.I("SHLQ $2, R9")
	k.start()
	k.loop(0, func(step int) {
		for g := range k.groups {
			k.I("VMOVUPS %s, %d(BX)", k.reg(k.valueOf(step, g)), v.bytes*g)
		}
		k.I("ADDQ R9, BX")
	}, func() {})
	k.Ret()
}

// A q8Kernel is a function over weights in Q8 that is being written.
type q8Kernel struct {
	*asmgen.Func
	v            vector
	groups       int // vectors of columns
	scale, value int // the first registers of scales, and of values
}

func (k *q8Kernel) reg(i int) string { return fmt.Sprintf("%s%d", k.v.reg, i) }

// valueOf returns the register of a step's values. With AVX-512 the steps of a turn have registers of their own.
func (k *q8Kernel) valueOf(step, group int) int {
	if k.v.reg == "Z" {
		return k.value + step*k.groups + group
	}
	return k.value + group
}

// start loads what loop counts: the block, the step in it, and the steps.
func (k *q8Kernel) start() {
	k.Arg("b", "SI")
	k.Arg("ldb", "DX")
	k.Arg("steps", "CX")
}

// loop calls use for each of four steps with the values of a pass in registers, in a loop over all steps.
func (k *q8Kernel) loop(pass int, use func(step int), turn func()) {
	first := k.v.bytes / 4 * k.groups * pass // column
	block, inner := k.NewLabel("block"), k.NewLabel("loop")
	k.Label(block)
	for g := range k.groups {
		k.I("VCVTPH2PS %d(SI), %s", 2*first+g*k.v.bytes/2, k.reg(k.scale+g))
	}
	k.Comment("R8: steps of this block")
	k.I("MOVQ $%d, R8", q8Block)
	k.I("SUBQ DX, R8")
	k.I("CMPQ R8, CX")
	k.I("CMOVQGT CX, R8")
	k.I("SUBQ R8, CX")
	k.I("SHLQ $5, DX")
	k.I("LEAQ %d(SI)(DX*1), DI", q8Scales+first)
	k.I("XORL DX, DX")
	k.I("PREFETCHT0 %d(DI)", q8Ahead+q8Block*q8Block) // where turns leave out a line, the scales'
	k.I("PCALIGN $32")
	k.Label(inner)
	for line := range 2 {
		k.I("PREFETCHT0 %d(DI)", q8Ahead+64*line)
	}
	for step := range 4 {
		for g := range k.groups {
			x := k.reg(k.valueOf(step, g))
			k.I("VPMOVSXBD %d(DI), %s", q8Block*step+k.v.bytes/4*g, x)
			k.I("VCVTDQ2PS %[1]s, %[1]s", x)
			k.I("VMULPS %s, %s, %[2]s", k.reg(k.scale+g), x)
		}
		use(step)
	}
	k.I("ADDQ $%d, DI", 4*q8Block)
	turn()
	k.I("SUBQ $4, R8")
	k.I("JNE %s", inner)
	k.I("ADDQ $%d, SI", q8Bytes)
	k.I("TESTQ CX, CX")
	k.I("JNE %s", block)
}
