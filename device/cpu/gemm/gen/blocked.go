package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// blockSide is the side of a block of tensor's blocked formats, and blockAhead by how many bytes memory is prefetched.
const (
	blockSide  = 32
	blockAhead = 4096
)

// A blockFormat is a blocked format.
type blockFormat struct {
	name   string
	size   int // bytes of a weight, or of a pair
	scales int // bytes of scales before the weights of a block
	pair   int // weights of a row that are multiplied together: columns of a step
	// load loads weights from an address and converts them to numbers in register x; scale is the register of their
	// columns' scales.
	load func(fn *asmgen.Func, from, x, scale string)
}

var blockFormats = []blockFormat{
	{"BlockedF32", 4, 0, 1, func(fn *asmgen.Func, from, x, _ string) { fn.I("VMOVUPS %s, %s", from, x) }},
	{"BlockedBF16", 2, 0, 1, func(fn *asmgen.Func, from, x, _ string) {
		fn.I("VPMOVZXWD %s, %s", from, x)
		fn.I("VPSLLD $16, %[1]s, %[1]s", x)
	}},
	{"Q8", 1, 2 * blockSide, 1, func(fn *asmgen.Func, from, x, scale string) {
		fn.I("VPMOVSXBD %s, %s", from, x)
		fn.I("VCVTDQ2PS %[1]s, %[1]s", x)
		fn.I("VMULPS %s, %s, %[2]s", scale, x)
	}},
}

// blockPairs is the format for kernels that multiply pairs.
var blockPairs = blockFormat{"BlockedPairs", 4, 0, 2, blockFormats[0].load}

// steps returns the number of steps of a block, and bytes its size in bytes.
func (b blockFormat) steps() int { return blockSide / b.pair }
func (b blockFormat) bytes() int { return b.scales + b.size*blockSide*b.steps() }

// fewBlocked writes a kernel of type few for a blocked format: ldb is the first k to read in the first block, and
// steps is the number of steps, a multiple of 4. Nothing needs to be transposed. Memory is read in order; without
// prefetching, one row of weights in Q8 takes twice as long from memory.
//
// With AVX-512 and one row each step of Q8 takes 8 instructions on the ports 0 and 5 for 32 bytes, of BF16 6 for 64, of
// FP32 2 for 128; the chain of sums takes 4 cycles. A step of pairs of BF16 is two columns, read like one of FP32. AVX2
// has registers for one row; blockedRows writes its kernels for more.
//
// Registers: sums from 0 on, then scales, then values, then a broadcast with AVX2 and pairs.
func fewBlocked(f *asmgen.File, v vector, rows int, b blockFormat) {
	k := &blockKernel{
		v: v, b: b, groups: blockSide * 4 / v.bytes,
		Func: f.Func(fmt.Sprintf("few%s%sx%d", b.name, v.name, rows),
			fmt.Sprintf("is a kernel of type few for %d rows and %d columns of %s.", rows, blockSide, b.name),
			"c, a *float32, rows int, b unsafe.Pointer, ldb, steps, add int, next uintptr, spare *float32"),
	}
	k.scale = k.groups * rows
	k.value = k.scale + k.groups
	k.Arg("a", "BX")
	k.start()
	for i := range k.groups * rows {
		k.I("VXORPS %[1]s, %[1]s, %[1]s", k.reg(i))
	}
	k.loop(0, func(step int) {
		for i := range rows {
			a := fmt.Sprintf("%d(BX)", 4*(step*rows+i))
			if v.name != avx512.name {
				k.I("VBROADCASTSS %s, %s", a, k.reg(k.broadcast()))
			}
			for g := range k.groups {
				x, sum := k.valueOf(step, g), k.groups*i+g
				if v.name != avx512.name {
					v.fma(k.Func, x, k.broadcast(), sum)
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
				use(4*32*i+v.bytes*g, k.reg(k.groups*i+g))
			}
		}
	}
	each(func(offset int, sum string) { k.I("VADDPS %d(DI), %s, %[2]s", offset, sum) })
	k.Label(end)
	each(func(offset int, sum string) { k.I("VMOVUPS %s, %d(DI)", sum, offset) })
	k.Ret()
}

// unblock writes functions of type unblock. With AVX2 panels have half of the columns of a block.
func unblock(f *asmgen.File, v vector, b blockFormat) {
	halves := []string{""}
	if v.reg == "Y" {
		halves = []string{"Left", "Right"}
	}
	cols := blockSide / len(halves)
	for part, half := range halves {
		k := &blockKernel{
			v: v, b: b, groups: cols * 4 / v.bytes,
			Func: f.Func("unblock"+b.name+v.name+half,
				fmt.Sprintf("packs steps of k of %d columns to rows of dst, ldd numbers apart.", cols),
				"dst *float32, ldd int, b unsafe.Pointer, ldb, steps int"),
		}
		k.value = k.groups
		k.Arg("dst", "BX")
		k.Arg("ldd", "R9")
		k.I("SHLQ $2, R9")
		k.start()
		k.loop(part, func(step int) {
			for g := range k.groups {
				k.I("VMOVUPS %s, %d(BX)", k.reg(k.valueOf(step, g)), v.bytes*g)
			}
			k.I("ADDQ R9, BX")
		}, func() {})
		k.Ret()
	}
}

// A blockKernel is a function over a blocked format that is being written.
type blockKernel struct {
	*asmgen.Func
	v            vector
	b            blockFormat
	groups       int // vectors of columns
	scale, value int // the first registers of scales, and of values
}

func (k *blockKernel) reg(i int) string { return fmt.Sprintf("%s%d", k.v.reg, i) }

// valueOf returns the register of a step's values. With AVX-512 the steps of a turn have registers of their own.
func (k *blockKernel) valueOf(step, group int) int {
	if k.v.reg == "Z" {
		return k.value + step*k.groups + group
	}
	return k.value + group
}

// broadcast returns the register after those of the values.
func (k *blockKernel) broadcast() int { return k.valueOf(3, k.groups-1) + 1 }

// start loads the counters of loop: the block, the step in it, and the number of steps.
func (k *blockKernel) start() {
	k.Arg("b", "SI")
	k.Arg("ldb", "DX")
	k.Arg("steps", "CX")
	if k.b.pair > 1 {
		k.I("SHRQ $%d, DX", log2(k.b.pair))
		k.I("SHRQ $%d, CX", log2(k.b.pair))
	}
}

// line returns the bytes of a step.
func (k *blockKernel) line() int { return k.b.size * blockSide }

// scales loads the scales of the columns from first on.
func (k *blockKernel) scales(first int) {
	for g := range k.groups {
		if k.b.scales > 0 {
			k.I("VCVTPH2PS %d(SI), %s", 2*first+g*k.v.bytes/2, k.reg(k.scale+g))
		}
	}
}

// values loads the values of a step.
func (k *blockKernel) values(step int) {
	for g := range k.groups {
		from := fmt.Sprintf("%d(DI)", k.line()*step+k.b.size*k.v.bytes/4*g)
		k.b.load(k.Func, from, k.reg(k.valueOf(step, g)), k.reg(k.scale+g))
	}
}

// stepsOfBlock counts the steps of a block, turns DX into bytes and leaves the steps of later blocks in CX.
func (k *blockKernel) stepsOfBlock() {
	k.Comment("R8: steps of this block")
	k.I("MOVQ $%d, R8", k.b.steps())
	k.I("SUBQ DX, R8")
	k.I("CMPQ R8, CX")
	k.I("CMOVQGT CX, R8")
	k.I("SUBQ R8, CX")
	k.I("IMULQ $%d, DX", k.line())
}

// loop calls use for each of four steps with the values of a part of the columns in registers, in a loop over all
// steps.
func (k *blockKernel) loop(part int, use func(step int), turn func()) {
	first := k.v.bytes / 4 * k.groups * part // column
	line := k.line()
	block, inner := k.NewLabel("block"), k.NewLabel("loop")
	k.Label(block)
	k.scales(first)
	k.stepsOfBlock()
	k.I("LEAQ %d(SI)(DX*1), DI", k.b.scales+k.b.size*first)
	k.I("XORL DX, DX")
	if k.b.scales > 0 {
		k.I("PREFETCHT0 %d(DI)", blockAhead+line*k.b.steps()) // where turns leave out a line, the scales'
	}
	k.I("PCALIGN $32")
	k.Label(inner)
	for at := 0; at < 4*line; at += 64 {
		k.I("PREFETCHT0 %d(DI)", blockAhead+at)
	}
	for step := range 4 {
		k.values(step)
		use(step)
	}
	k.I("ADDQ $%d, DI", 4*line)
	turn()
	k.I("SUBQ $4, R8")
	k.I("JNE %s", inner)
	k.I("ADDQ $%d, SI", k.b.bytes())
	k.I("TESTQ CX, CX")
	k.I("JNE %s", block)
}
