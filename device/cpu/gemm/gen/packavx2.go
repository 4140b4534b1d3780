package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// A loader8 loads 8 words from memory at address src into Y dst and converts them, for packing with AVX2. Y temp and Y
// temp+1 are scratch; constants are in memory. AVX2 has no masks for 16-bit elements, so Go copies the rest of a row
// after whole vectors.
type loader8 struct {
	name string
	size int // bytes of an element
	load func(fn *asmgen.Func, src string, dst, temp int)
}

// loaders8 convert like the loaders of the same names.
var loaders8 = []loader8{
	{f32.name, 4, func(fn *asmgen.Func, src string, dst, _ int) { fn.I("VMOVUPS %s, Y%d", src, dst) }},
	{f32Rounded.name, 4, func(fn *asmgen.Func, src string, dst, temp int) {
		fn.I("VMOVUPS %s, Y%d", src, temp)
		roundAVX2(fn, temp, dst, temp+1)
	}},
	{bf16.name, 2, loadBF16x8},
	{tf32.name, 4, func(fn *asmgen.Func, src string, dst, temp int) {
		fn.I("VMOVUPS %s, Y%d", src, temp)
		fn.I("VPADDD ·roundingTF32+0(SB), Y%d, Y%d", temp, dst)
		fn.I("VPAND ·roundingTF32+32(SB), Y%d, Y%[1]d", dst)
		fn.I("VPAND ·roundingTF32+64(SB), Y%d, Y%d", temp, temp+1)
		fn.I("VPCMPEQD ·roundingTF32+64(SB), Y%d, Y%[1]d", temp+1) // NaN and infinities
		fn.I("VBLENDVPS Y%d, Y%d, Y%d, Y%[3]d", temp+1, temp, dst)
	}},
	{f16.name, 2, loadF16x8},
	{f32Half.name, 4, func(fn *asmgen.Func, src string, dst, temp int) {
		fn.I("VMOVUPS %s, Y%d", src, temp)
		fn.I("VCVTPS2PH $0, Y%d, X%[1]d", temp)
		fn.I("VCVTPH2PS X%d, Y%d", temp, dst)
	}},
}

func loadBF16x8(fn *asmgen.Func, src string, dst, _ int) {
	fn.I("VPMOVZXWD %s, Y%d", src, dst)
	fn.I("VPSLLD $16, Y%d, Y%[1]d", dst)
}

func loadF16x8(fn *asmgen.Func, src string, dst, _ int) { fn.I("VCVTPH2PS %s, Y%d", src, dst) }

// copyRowsAVX2 writes the copy of rows without transposition, 32 words at a time and the rest 8 at a time.
func copyRowsAVX2(f *asmgen.File, l loader8) {
	fn := f.Func("copyRows"+l.name+"AVX2", "copies rows×cols elements, row by row; cols is a multiple of 8.",
		"dst *float32, ldd int, src unsafe.Pointer, lds, rows, cols int")
	packArgs(fn, l)
	row, four, eight, one, next := fn.NewLabel("row"), fn.NewLabel("four"), fn.NewLabel("eight"), fn.NewLabel("one"),
		fn.NewLabel("next")
	fn.Label(row)
	fn.I("MOVQ SI, R10")
	fn.I("MOVQ DI, R11")
	fn.I("MOVQ BX, CX")
	fn.I("SUBQ $32, CX")
	fn.I("JLT %s", eight)
	fn.Label(four)
	for i := range 4 {
		l.load(fn, fmt.Sprintf("%d(R10)", 8*i*l.size), i, 4+2*i)
	}
	for i := range 4 {
		fn.I("VMOVUPS Y%d, %d(R11)", i, 32*i)
	}
	fn.I("ADDQ $%d, R10", 32*l.size)
	fn.I("ADDQ $128, R11")
	fn.I("SUBQ $32, CX")
	fn.I("JGE %s", four)
	fn.Label(eight)
	fn.I("ADDQ $32, CX")
	fn.I("JZ %s", next)
	fn.Label(one)
	l.load(fn, "0(R10)", 0, 4)
	fn.I("VMOVUPS Y0, (R11)")
	fn.I("ADDQ $%d, R10", 8*l.size)
	fn.I("ADDQ $32, R11")
	fn.I("SUBQ $8, CX")
	fn.I("JNZ %s", one)
	fn.Label(next)
	fn.I("ADDQ R9, SI")
	fn.I("ADDQ R8, DI")
	fn.I("DECQ DX")
	fn.I("JNZ %s", row)
	fn.Ret()
}

// panelsAVX2 writes the copy of rows into panels of 12 columns, the rows of a kernel's tile, so that the words that it
// reads together fill whole cache lines. The second load and store of a row of a panel overlap the first by 4 words.
func panelsAVX2(f *asmgen.File, l loader8) {
	const width = 12
	fn := f.Func("panels"+l.name+"AVX2", fmt.Sprintf(
		"copies rows×cols elements into panels of %d columns, ldd words apart; cols is a multiple of it.", width),
		"dst *float32, ldd int, src unsafe.Pointer, lds, rows, cols int")
	packArgs(fn, l)
	row, panel := fn.NewLabel("row"), fn.NewLabel("panel")
	fn.Label(row)
	fn.I("MOVQ SI, R10")
	fn.I("MOVQ DI, R11")
	fn.I("MOVQ BX, CX")
	fn.Label(panel)
	l.load(fn, "0(R10)", 0, 4)
	l.load(fn, fmt.Sprintf("%d(R10)", 4*l.size), 1, 6)
	fn.I("VMOVUPS Y0, (R11)")
	fn.I("VMOVUPS Y1, 16(R11)")
	fn.I("ADDQ $%d, R10", width*l.size)
	fn.I("ADDQ R8, R11")
	fn.I("SUBQ $%d, CX", width)
	fn.I("JNZ %s", panel)
	fn.I("ADDQ R9, SI")
	fn.I("ADDQ $%d, DI", 4*width)
	fn.I("DECQ DX")
	fn.I("JNZ %s", row)
	fn.Ret()
}

// packArgs loads the arguments of a copy: dst and src in DI and SI, their strides in bytes in R8 and R9, rows in DX,
// cols in BX.
func packArgs(fn *asmgen.Func, l loader8) {
	fn.Arg("dst", "DI")
	fn.Arg("ldd", "R8")
	fn.Arg("src", "SI")
	fn.Arg("lds", "R9")
	fn.Arg("rows", "DX")
	fn.Arg("cols", "BX")
	fn.I("SHLQ $2, R8")
	fn.I("SHLQ $%d, R9", log2(l.size))
}

// transposeAVX2 writes the transposition of 8 rows, in blocks of 8×8 words, by shuffles in registers. A block of BF16
// has 16 columns, transposed as pairs and widened afterwards, which halves the shuffles. If 8 columns are left, they
// are widened first.
func transposeAVX2(f *asmgen.File, l loader8) {
	fn := f.Func("transpose"+l.name+"AVX2", "copies 8 rows of cols elements transposed; cols is a multiple of 8.",
		"dst *float32, ldd int, src unsafe.Pointer, lds, rows, cols int")
	packArgs(fn, l)
	fn.I("LEAQ (R9)(R9*2), R10") // three rows of src
	rows := func(load func(src string, i int)) {
		fn.I("MOVQ SI, R11")
		for i := range 8 {
			load("0(R11)"+[]string{"", "(R9*1)", "(R9*2)", "(R10*1)"}[i%4], i)
			if i == 3 {
				fn.I("LEAQ (R11)(R9*4), R11")
			}
		}
	}
	write := func(y int) {
		fn.I("VMOVUPS Y%d, (DI)", y)
		fn.I("ADDQ R8, DI")
	}
	eight, done := fn.NewLabel("eight"), fn.NewLabel("done")
	if l.name == bf16.name {
		pairs := fn.NewLabel("pairs")
		fn.Label(pairs)
		fn.I("CMPQ BX, $16")
		fn.I("JLT %s", eight)
		rows(func(src string, i int) { fn.I("VMOVDQU %s, Y%d", src, i) })
		for _, y := range turn8(fn) {
			fn.I("VPSLLD $16, Y%d, Y9", y)
			write(9)
			fn.I("VPAND ·rounding+64(SB), Y%d, Y%[1]d", y)
			write(y)
		}
		fn.I("ADDQ $32, SI")
		fn.I("SUBQ $16, BX")
		fn.I("JMP %s", pairs)
	}
	fn.Label(eight)
	fn.I("SUBQ $8, BX")
	fn.I("JLT %s", done)
	rows(func(src string, i int) { l.load(fn, src, i, 9) })
	for _, y := range turn8(fn) {
		write(y)
	}
	fn.I("ADDQ $%d, SI", 8*l.size)
	fn.I("JMP %s", eight)
	fn.Label(done)
	fn.Ret()
}

// turn8 transposes the 8×8 words in Y0…Y7, using Y8, and returns the registers of the result's rows.
func turn8(fn *asmgen.Func) [8]int {
	r, free := [8]int{0, 1, 2, 3, 4, 5, 6, 7}, 8
	pair := func(i, j int, lo, hi string) {
		fn.I("%s Y%d, Y%d, Y%d", lo, r[j], r[i], free)
		fn.I("%s Y%d, Y%d, Y%d", hi, r[j], r[i], r[j])
		r[i], free = free, r[i]
	}
	for i := 0; i < 8; i += 2 {
		pair(i, i+1, "VUNPCKLPS", "VUNPCKHPS")
	}
	for _, i := range []int{0, 1, 4, 5} { // r[4g], r[4g+2], r[4g+1], r[4g+3]: columns 0 to 3 in either lane
		pair(i, i+2, "VUNPCKLPD", "VUNPCKHPD")
	}
	for i := range 4 {
		pair(i, i+4, "VPERM2F128 $0x20,", "VPERM2F128 $0x31,")
	}
	return [8]int{r[0], r[2], r[1], r[3], r[4], r[6], r[5], r[7]}
}

// storesAVX2 writes the stores of whole tiles of sums, 32 columns, in each format of a result.
func storesAVX2(f *asmgen.File) {
	storeAVX2(f, "F32", 4, nil, func(fn *asmgen.Func, y, offset int) { fn.I("VMOVUPS Y%d, %d(DI)", y, offset) })
	storeAVX2(f, "BF16", 2, loadBF16x8, func(fn *asmgen.Func, y, offset int) {
		roundAVX2(fn, y, y+4, y+8)
		fn.I("VPSRLD $16, Y%d, Y%[1]d", y+4)
		fn.I("VEXTRACTI128 $1, Y%d, X%d", y+4, y+8)
		fn.I("VPACKUSDW X%d, X%d, X%[2]d", y+8, y+4)
		fn.I("VMOVUPS X%d, %d(DI)", y+4, offset)
	})
	storeAVX2(f, "F16", 2, loadF16x8, func(fn *asmgen.Func, y, offset int) {
		fn.I("VCVTPS2PH $0, Y%d, %d(DI)", y, offset)
	})
}

// storeAVX2 writes the store of a tile to a result in a format: widen loads 8 elements of it, nil for FP32, and put
// stores those in Y y at offset bytes; Y y+4 and Y y+8 are scratch.
func storeAVX2(f *asmgen.File, format string, size int, widen func(fn *asmgen.Func, src string, dst, temp int),
	put func(fn *asmgen.Func, y, offset int)) {
	fn := f.FuncOf("store"+format+"AVX2", "stores rows of 32 scaled sums in "+format+", or adds them with add.",
		"dst unsafe.Pointer, ldd int, c *float32, rows int, add int, scale float32", "")
	fn.I("VBROADCASTSS %s, Y15", fn.ArgRef("scale"))
	fn.Arg("dst", "DI")
	fn.Arg("ldd", "R8")
	fn.Arg("c", "SI")
	fn.Arg("rows", "DX")
	fn.Arg("add", "AX")
	fn.I("SHLQ $%d, R8", log2(size))
	row, stored := fn.NewLabel("row"), fn.NewLabel("stored")
	fn.Label(row)
	for i := range 4 {
		fn.I("VMULPS %d(SI), Y15, Y%d", 32*i, i)
	}
	fn.I("TESTQ AX, AX")
	fn.I("JEQ %s", stored)
	for i := range 4 {
		at := fmt.Sprintf("%d(DI)", 8*i*size)
		if widen == nil {
			fn.I("VADDPS %s, Y%d, Y%[2]d", at, i)
			continue
		}
		widen(fn, at, 4+i, 8)
		fn.I("VADDPS Y%d, Y%d, Y%[2]d", 4+i, i)
	}
	fn.Label(stored)
	for i := range 4 {
		put(fn, i, 8*i*size)
	}
	fn.I("ADDQ $128, SI")
	fn.I("ADDQ R8, DI")
	fn.I("DECQ DX")
	fn.I("JNZ %s", row)
	fn.Ret()
}
