package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// A loader loads 16 words from memory into a ZMM register and converts them. Packing functions differ only in their
// loader.
type loader struct {
	name string
	size int // bytes of an element
	wide int // elements of k in a word: 2 for pairs
	// consts loads the constants of load into Z24…Z31.
	consts func(fn *asmgen.Func)
	// load converts 16 words along a row, at address src, to Z dst. Elements whose bit in mask is 0 are read as 0
	// without access to memory; an empty mask means all. Z temp to Z temp+2 and K7 are scratch. For f32Pair, the
	// upper half of the mask is in K+1.
	load func(fn *asmgen.Func, src, mask string, dst, temp int)
}

// masked returns the suffix and operand of a zero-masked instruction.
func masked(mask string) (suffix, operand string) {
	if mask == "" {
		return "", ""
	}
	return ".Z", ", " + mask
}

var f32 = loader{
	name: "F32", size: 4, wide: 1,
	consts: func(fn *asmgen.Func) {},
	load: func(fn *asmgen.Func, src, mask string, dst, temp int) {
		z, k := masked(mask)
		fn.I("VMOVUPS%s %s%s, Z%d", z, src, k, dst)
	},
}

// f32Rounded rounds to BF16, ties to even, and keeps the result in FP32. NaNs become quiet NaNs.
var f32Rounded = loader{
	name: "F32Rounded", size: 4, wide: 1,
	consts: roundConsts,
	load: func(fn *asmgen.Func, src, mask string, dst, temp int) {
		f32.load(fn, src, mask, temp, temp)
		round(fn, temp, dst)
		fn.I("VPANDD Z27, Z%d, Z%d", dst, dst)
	},
}

func roundConsts(fn *asmgen.Func) {
	for i, c := range []string{"0x22", "0x7fff", "1"} {
		fn.I("MOVL $%s, AX", c)
		fn.I("VPBROADCASTD AX, Z%d", 29+i)
	}
	fn.I("MOVL $0x10000, AX")
	fn.I("VPBROADCASTD AX, Z26")
	highConst(fn)
}

func highConst(fn *asmgen.Func) {
	fn.I("MOVL $0xffff0000, AX")
	fn.I("VPBROADCASTD AX, Z27")
}

// round leaves the rounded value of Z x in the upper halves of Z to; the lower halves are not cleared. It adds half
// of the last place, less one unit unless the last place is odd. The quiet NaN replaces the results of NaNs (Z29
// selects it).
func round(fn *asmgen.Func, x, to int) {
	fn.I("VPTESTMD Z26, Z%d, K7", x)
	fn.I("VPADDD Z30, Z%d, Z%d", x, to)
	fn.I("VPADDD Z31, Z%[1]d, K7, Z%[1]d", to)
	fn.I("VFIXUPIMMPS $0, Z29, Z%d, Z%d", x, to)
}

// bf16 widens to FP32.
var bf16 = loader{
	name: "BF16", size: 2, wide: 1,
	consts: highConst,
	load: func(fn *asmgen.Func, src, mask string, dst, temp int) {
		z, k := masked(mask)
		fn.I("VPMOVZXWD%s %s%s, Z%d", z, src, k, dst)
		fn.I("VPSLLD $16, Z%d, Z%d", dst, dst)
	},
}

// tf32 rounds to a 10-bit mantissa, ties away from zero, and keeps the result in FP32. NaN and infinities do not
// change.
var tf32 = loader{
	name: "TF32", size: 4, wide: 1,
	consts: func(fn *asmgen.Func) {
		for i, c := range []string{"0x1000", "0xffffe000", "0x7f800000"} {
			fn.I("MOVL $%s, AX", c)
			fn.I("VPBROADCASTD AX, Z%d", 29+i)
		}
	},
	load: func(fn *asmgen.Func, src, mask string, dst, temp int) {
		f32.load(fn, src, mask, dst, temp)
		fn.I("VPANDD Z31, Z%d, Z%d", dst, temp)
		fn.I("VPCMPD $4, Z31, Z%d, K7", temp) // not all exponent bits set
		fn.I("VPADDD Z29, Z%d, K7, Z%d", dst, dst)
		fn.I("VPANDD Z30, Z%d, K7, Z%d", dst, dst)
	},
}

// f16 widens to FP32.
var f16 = loader{
	name: "F16", size: 2, wide: 1,
	consts: func(fn *asmgen.Func) {},
	load: func(fn *asmgen.Func, src, mask string, dst, temp int) {
		z, k := masked(mask)
		fn.I("VCVTPH2PS%s %s%s, Z%d", z, src, k, dst)
	},
}

// f32Half rounds to FP16, ties to even, and keeps the result in FP32.
var f32Half = loader{
	name: "F32Half", size: 4, wide: 1,
	consts: func(fn *asmgen.Func) {},
	load: func(fn *asmgen.Func, src, mask string, dst, temp int) {
		f32.load(fn, src, mask, dst, temp)
		fn.I("VCVTPS2PH $0, Z%d, Y%d", dst, temp)
		fn.I("VCVTPH2PS Y%d, Z%d", temp, dst)
	},
}

// bf16Pair loads pairs of BF16 without conversion.
var bf16Pair = loader{
	name: "BF16Pair", size: 2, wide: 2,
	consts: func(fn *asmgen.Func) {},
	load: func(fn *asmgen.Func, src, mask string, dst, temp int) {
		z, k := masked(mask)
		fn.I("VMOVDQU16%s %s%s, Z%d", z, src, k, dst)
	},
}

// f32Pair rounds pairs of FP32 to BF16.
var f32Pair = loader{
	name: "F32Pair", size: 4, wide: 2,
	consts: func(fn *asmgen.Func) {},
	load: func(fn *asmgen.Func, src, mask string, dst, temp int) {
		f32.load(fn, src, mask, dst, temp)
		upper := ""
		if mask != "" {
			upper = "K" + string(rune(mask[1]+1))
		}
		f32.load(fn, "64+"+src, upper, temp, temp)
		fn.VCVTNE2PS2BF16(dst, temp, dst)
	},
}

// maskOf sets mask register k (and k+1 for f32Pair) to the lowest n bits. n is a general register, not modified, 0 ≤
// n ≤ 32. It uses AX.
func (l loader) maskOf(fn *asmgen.Func, n string, k int) {
	fn.I("MOVQ $-1, AX")
	fn.I("BZHIQ %s, AX, AX", n)
	if l.size == 4 {
		fn.I("KMOVW AX, K%d", k)
		fn.I("SHRQ $16, AX")
		fn.I("KMOVW AX, K%d", k+1)
		return
	}
	fn.I("KMOVD AX, K%d", k)
}

// copyRows writes the copy of rows without transposition. Words are written 16 at a time, the last ones under a mask.
func copyRows(f *asmgen.File, l loader) {
	fn := f.Func("copyRows"+l.name, "copies rows×cols elements, row by row.",
		"dst *float32, ldd int, src unsafe.Pointer, lds, rows, cols int")
	per := 16 * l.wide
	l.consts(fn)
	fn.Arg("dst", "DI")
	fn.Arg("ldd", "R8")
	fn.Arg("src", "SI")
	fn.Arg("lds", "R9")
	fn.Arg("rows", "DX")
	fn.Arg("cols", "BX")
	fn.I("SHLQ $2, R8")
	fn.I("SHLQ $%d, R9", log2(l.size))
	fn.Comment("masks of the last block: elements in K1 (K2), words in K3")
	fn.I("MOVQ BX, CX")
	fn.I("ANDQ $%d, CX", per-1)
	l.maskOf(fn, "CX", 1)
	fn.I("ADDQ $%d, CX", l.wide-1)
	fn.I("SHRQ $%d, CX", log2(l.wide))
	words(fn, "CX", 3)

	row, block, rest, next := fn.NewLabel("row"), fn.NewLabel("block"), fn.NewLabel("rest"), fn.NewLabel("next")
	four := fn.NewLabel("four")
	fn.Label(row)
	fn.I("MOVQ SI, R10")
	fn.I("MOVQ DI, R11")
	fn.I("MOVQ BX, CX")
	fn.I("SUBQ $%d, CX", 4*per)
	fn.I("JLT %s", block)
	fn.Label(four)
	for i := range 4 {
		l.load(fn, fmt.Sprintf("%d(R10)", i*per*l.size), "", i, 16+i)
	}
	for i := range 4 {
		fn.I("VMOVUPS Z%d, %d(R11)", i, 64*i)
	}
	fn.I("ADDQ $%d, R10", 4*per*l.size)
	fn.I("ADDQ $256, R11")
	fn.I("SUBQ $%d, CX", 4*per)
	fn.I("JGE %s", four)
	fn.Label(block)
	fn.I("ADDQ $%d, CX", 4*per)
	one := fn.NewLabel("one")
	fn.Label(one)
	fn.I("SUBQ $%d, CX", per)
	fn.I("JLT %s", rest)
	l.load(fn, "0(R10)", "", 0, 16)
	fn.I("VMOVUPS Z0, (R11)")
	fn.I("ADDQ $%d, R10", per*l.size)
	fn.I("ADDQ $64, R11")
	fn.I("JMP %s", one)
	fn.Label(rest)
	fn.I("CMPQ CX, $%d", -per)
	fn.I("JEQ %s", next)
	l.load(fn, "0(R10)", "K1", 0, 16)
	fn.I("VMOVUPS Z0, K3, (R11)")
	fn.Label(next)
	fn.I("ADDQ R9, SI")
	fn.I("ADDQ R8, DI")
	fn.I("DECQ DX")
	fn.I("JNZ %s", row)
	fn.Ret()
}

// words sets mask register k to the lowest n bits. n is a general register, not modified. It uses AX.
func words(fn *asmgen.Func, n string, k int) {
	fn.I("MOVQ $-1, AX")
	fn.I("BZHIQ %s, AX, AX", n)
	fn.I("KMOVW AX, K%d", k)
}

func log2(n int) int {
	return map[int]int{1: 0, 2: 1, 4: 2}[n]
}

// panels writes the copy of rows into panels of width columns, 32 or 48: whole cache lines, because stores that cross
// lines take twice as long. If words are pairs, a pair comes from two rows, and a missing second row counts as zero.
func panels(f *asmgen.File, l loader, width int) {
	fn := f.Func(fmt.Sprintf("panels%s%d", l.name, width),
		fmt.Sprintf("copies rows×cols elements into panels of %d columns.", width),
		"dst *float32, stride int, src unsafe.Pointer, lds, rows, cols int")
	l.consts(fn)
	fn.Arg("dst", "DI")
	fn.Arg("stride", "R8")
	fn.Arg("src", "SI")
	fn.Arg("lds", "R9")
	fn.Arg("rows", "DX")
	fn.Arg("cols", "BX")
	fn.I("SHLQ $2, R8")
	fn.I("SHLQ $%d, R9", log2(l.size))
	vectors := width / 16

	panel, whole, row := fn.NewLabel("panel"), fn.NewLabel("whole"), fn.NewLabel("row")
	fn.Label(panel)
	fn.Comment("columns of this panel: in the first row (of a pair) masked by K1, K2 (and K3), in the second by K4, " +
		"K5 (and K6)")
	fn.I("MOVL $%d, R13", width)
	fn.I("CMPQ BX, R13")
	fn.I("JGE %s", whole)
	fn.I("MOVQ BX, R13")
	fn.Label(whole)
	fn.I("MOVQ $-1, AX")
	fn.I("BZHIQ R13, AX, AX")
	for v := range vectors {
		fn.I("KMOVW AX, K%d", 1+v)
		fn.I("KMOVW AX, K%d", 4+v)
		fn.I("SHRQ $16, AX")
	}
	fn.I("MOVQ SI, R10")
	fn.I("MOVQ DI, R11")
	fn.I("MOVQ DX, CX")
	fn.Label(row)
	if l.wide == 2 {
		pair := fn.NewLabel("pair")
		fn.I("CMPQ CX, $2")
		fn.I("JGE %s", pair)
		for v := range vectors {
			fn.I("KXORW K%[1]d, K%[1]d, K%[1]d", 4+v)
		}
		fn.Label(pair)
	}
	for v := range vectors {
		off := 16 * v * l.size
		l.loadDown(fn, fmt.Sprintf("%d(R10)", off), fmt.Sprintf("%d(R10)(R9*1)", off), fmt.Sprintf("K%d", 1+v),
			fmt.Sprintf("K%d", 4+v), v, 16+v)
	}
	for v := range vectors {
		fn.I("VMOVUPS Z%d, %d(R11)", v, 64*v)
	}
	fn.I("LEAQ (R10)(R9*%d), R10", l.wide)
	fn.I("ADDQ $%d, R11", 64*vectors)
	fn.I("SUBQ $%d, CX", l.wide)
	fn.I("JGT %s", row)
	fn.I("ADDQ $%d, SI", width*l.size)
	fn.I("ADDQ R8, DI")
	fn.I("SUBQ R13, BX")
	fn.I("JGT %s", panel)
	fn.Ret()
}

// loadDown is load for words that run down columns: a pair is one element of the row at first and one of the row at
// second.
func (l loader) loadDown(fn *asmgen.Func, first, second, mask1, mask2 string, dst, temp int) {
	switch l.name {
	case bf16Pair.name:
		fn.I("VPMOVZXWD.Z %s, %s, Z%d", first, mask1, dst)
		fn.I("VPMOVZXWD.Z %s, %s, Z%d", second, mask2, temp)
	case f32Pair.name:
		fn.I("VMOVUPS.Z %s, %s, Z%d", first, mask1, dst)
		fn.I("VMOVUPS.Z %s, %s, Z%d", second, mask2, temp)
		fn.VCVTNE2PS2BF16(dst, temp, temp)
		fn.I("VPMOVZXWD Y%d, Z%d", temp, dst)
		fn.I("VEXTRACTI64X4 $1, Z%d, Y%d", temp, temp)
		fn.I("VPMOVZXWD Y%d, Z%d", temp, temp)
	default:
		l.load(fn, first, mask1, dst, temp)
		return
	}
	fn.I("VPSLLD $16, Z%d, Z%d", temp, temp)
	fn.I("VPORD Z%d, Z%d, Z%d", temp, dst, dst)
}
