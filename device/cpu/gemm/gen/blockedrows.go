package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// blockedRows writes a kernel of type few for blocks and any multiple of four rows, for AVX2, whose registers hold the
// sums of four rows by half of a block. So every four rows sweep a block twice, while it lies in the first-level cache;
// meanwhile their sums lie in spare. Every sweep prefetches an equal part of a later block: if only the first one read
// memory, memory and arithmetic would take turns.
//
// A step of a sweep takes 4 cycles for 8 FMAs in 8 chains. It has 6 loads; BF16 adds 2 shuffles and 2 shifts, Q8 2
// shuffles, 2 conversions and 2 products.
//
// Registers: sums 0 to 7, scales 8 and 9, values 10 and 11, a broadcast 12.
func blockedRows(f *asmgen.File, b blockFormat) {
	const rows, groups, broadcast = 4, 2, 12
	k := &blockKernel{
		v: avx2, b: b, groups: groups, scale: rows * groups, value: rows*groups + groups,
		Func: f.Func(fmt.Sprintf("few%sAVX2xN", b.name),
			fmt.Sprintf("is a kernel of type few for a multiple of %d rows and %d columns of %s.", rows, blockSide,
				b.name),
			"c, a *float32, rows int, b unsafe.Pointer, ldb, steps, add int, next uintptr, spare *float32"),
	}
	k.Comment("R9: bytes of a step of a; next: lines that a sweep prefetches, of a block's, rounded up")
	k.Arg("rows", "R9")
	k.I("SHLQ $2, R9")
	k.I("LEAQ %d(R9), AX", 4*rows*b.bytes()/64/2-1)
	k.I("XORL DX, DX")
	k.I("DIVQ R9")
	k.I("MOVQ AX, %s", k.ArgRef("next"))
	k.I("VXORPS Y0, Y0, Y0")
	k.eachSum("clear", func(at string) { k.I("VMOVUPS Y0, %s", at) })

	block, next := k.NewLabel("block"), k.NewLabel("rows")
	k.Arg("a", "BX")
	k.start()
	k.Label(block)
	k.stepsOfBlock()
	k.I("LEAQ %d(SI), R13", blockAhead)
	k.Arg("spare", "R10")
	k.I("XORL R12, R12")
	k.Label(next)
	for half := range 2 {
		k.sweep(half, rows, broadcast)
	}
	k.I("ADDQ $%d, R10", 4*blockSide*rows)
	k.I("ADDQ $%d, R12", 4*rows)
	k.I("CMPQ R12, R9")
	k.I("JLT %s", next)
	k.I("MOVQ R8, AX")
	k.I("IMULQ R9, AX")
	k.I("ADDQ AX, BX")
	k.I("XORL DX, DX")
	k.I("ADDQ $%d, SI", b.bytes())
	k.I("TESTQ CX, CX")
	k.I("JNE %s", block)

	store, end := k.NewLabel("store"), k.NewLabel("end")
	k.Arg("c", "DI")
	k.I("CMPQ %s, $0", k.ArgRef("add"))
	k.I("JEQ %s", store)
	k.eachSum("add", func(at string) {
		k.I("VMOVUPS %s, Y0", at)
		k.I("VADDPS (DI)(AX*1), Y0, Y0")
		k.I("VMOVUPS Y0, (DI)(AX*1)")
	})
	k.I("JMP %s", end)
	k.Label(store)
	k.eachSum("copy", func(at string) {
		k.I("VMOVUPS %s, Y0", at)
		k.I("VMOVUPS Y0, (DI)(AX*1)")
	})
	k.Label(end)
	k.Ret()
}

// eachSum calls use for the address of eight sums in spare, in a loop over all rows; AX is their offset.
func (k *blockKernel) eachSum(label string, use func(at string)) {
	loop := k.NewLabel(label)
	k.Arg("spare", "R10")
	k.I("MOVQ R9, R8")
	k.I("IMULQ $%d, R8", blockSide)
	k.I("XORL AX, AX")
	k.Label(loop)
	use("(R10)(AX*1)")
	k.I("ADDQ $%d, AX", k.v.bytes)
	k.I("CMPQ AX, R8")
	k.I("JLT %s", loop)
}

// sweep adds the steps of a half of a block to the sums of four rows.
func (k *blockKernel) sweep(half, rows, broadcast int) {
	cols := blockSide / 2
	each := func(use func(at, sum string)) {
		for i := range rows {
			for g := range k.groups {
				use(fmt.Sprintf("%d(R10)", 4*(blockSide*i+cols*half)+k.v.bytes*g), k.reg(k.groups*i+g))
			}
		}
	}
	each(func(at, sum string) { k.I("VMOVUPS %s, %s", at, sum) })
	k.scales(cols * half)
	ahead, loop := k.NewLabel("ahead"), k.NewLabel("loop")
	k.I("MOVQ %s, AX", k.ArgRef("next"))
	k.Label(ahead)
	k.I("PREFETCHT0 (R13)")
	k.I("ADDQ $64, R13")
	k.I("DECQ AX")
	k.I("JNE %s", ahead)
	k.I("LEAQ %d(SI)(DX*1), DI", k.b.scales+k.b.size*cols*half)
	k.I("LEAQ (BX)(R12*1), R11")
	k.I("MOVQ R8, AX")
	k.I("PCALIGN $32")
	k.Label(loop)
	for step := range 4 {
		k.values(step)
		for i := range rows {
			k.I("VBROADCASTSS %d(R11), %s", 4*i, k.reg(broadcast))
			for g := range k.groups {
				k.v.fma(k.Func, k.valueOf(step, g), broadcast, k.groups*i+g)
			}
		}
		k.I("ADDQ R9, R11")
	}
	k.I("ADDQ $%d, DI", 4*k.line())
	k.I("SUBQ $4, AX")
	k.I("JNE %s", loop)
	each(func(at, sum string) { k.I("VMOVUPS %s, %s", sum, at) })
}
