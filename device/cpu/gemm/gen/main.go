// Command gen writes the assembly of package gemm: kernels, packing and stores for each tier.
package main

import (
	"log"

	"anneal/internal/asmgen"
)

func main() {
	kernels()
	packing()
	fewRows()
	matrixUnits()
	kernelsARM()
	fewRowsARM()
	packingARM()
}

func write(f *asmgen.File, name string) {
	if err := f.Write(name); err != nil {
		log.Fatal(err)
	}
}

// kernels writes the kernels that compute tiles of sums, and the loops that measure their limit.
func kernels() {
	f := &asmgen.File{Package: "gemm", Generator: "gen/main.go"}
	for _, rows := range []int{12, 4} {
		kernel(f, avx512, rows, byRows)
		kernel(f, avx512, rows, byCols)
		kernel(f, dot, rows, byRows)
		kernel(f, dot, rows, byCols)
		kernel(f, avx512F64, rows, byRows)
		kernel(f, avx512F64, rows, byCols)
		kernel(f, avx2, rows, byRows)
		kernel(f, avx2, rows, byCols)
	}
	for _, rows := range []int{6, 4} {
		kernel(f, avx2F64, rows, byRows)
		kernel(f, avx2F64, rows, byCols)
	}
	peak(f, avx2, 12)
	peak(f, avx512, 24)
	peak(f, dot, 24)
	peak(f, avx2F64, 12)
	peak(f, avx512F64, 24)
	write(f, "kernel")
}

// packing writes the copies of operands and the stores of results.
func packing() {
	f := &asmgen.File{Package: "gemm", Generator: "gen/main.go"}
	for _, s := range []loader{f32, f32Rounded, bf16, tf32, f16, f32Half, f32Pair, bf16Pair} {
		copyRows(f, s)
		transpose(f, s)
		panels(f, s, 32)
		panels(f, s, 48)
	}
	storeF32(f)
	storeBF16(f)
	storeF16(f)
	for _, l := range loaders8 {
		copyRowsAVX2(f, l)
		panelsAVX2(f, l)
		transposeAVX2(f, l)
	}
	storesAVX2(f)
	write(f, "pack")
}

// fewRows writes the kernels of few rows.
func fewRows() {
	f := &asmgen.File{Package: "gemm", Generator: "gen/main.go"}
	for _, rows := range []int{1, 4, 8} {
		for _, l := range []loader{f32, f32Rounded, bf16} {
			for level := range 2 {
				few(f, avx512, rows, l, level+1)
			}
			if rows < 8 { // AVX2 has no registers for more
				few(f, avx2, rows, l, 1)
			}
		}
		for level := range 2 {
			few(f, dot, rows, f32Pair, level+1)
			few(f, dot, rows, bf16Pair, level+1)
		}
		for _, b := range blockFormats {
			fewBlocked(f, avx512, rows, b)
			if rows == 1 {
				fewBlocked(f, avx2, rows, b)
			}
		}
		fewBlocked(f, dot, rows, blockPairs)
	}
	for _, b := range blockFormats {
		unblock(f, avx512, b)
		unblock(f, avx2, b)
		blockedRows(f, b)
	}
	unblock(f, dot, blockPairs)
	write(f, "few")
}

// matrixUnits writes the kernels on tiles.
func matrixUnits() {
	f := &asmgen.File{Package: "gemm", Generator: "gen/main.go"}
	tiles(f, "tilesHighSum", true, false)
	tiles(f, "tilesHighRound", true, true)
	tiles(f, "tilesLowSum", false, false)
	tiles(f, "tilesLowRound", false, true)
	fewTiles(f, f32Pair)
	fewTiles(f, bf16Pair)
	columnsBF16(f)
	peakTiles(f)
	write(f, "tiles")
}

// kernelsARM writes the kernels of arm64, and the loops that measure their limit.
func kernelsARM() {
	f := &asmgen.File{Package: "gemm", Generator: "gen/main.go", Arch: "arm64"}
	for _, rows := range []int{6, 4} {
		for _, form := range []string{byRows, byCols} {
			neonKernel(f, rows, form)
			neonQuadKernel(f, rows, form)
		}
	}
	neonPeak(f, "NEON", func(fn *asmgen.Func, sum, x int) { fn.VLane("fmla", sum, x, x+4, sum%4) })
	neonPeak(f, "BFMMLA", func(fn *asmgen.Func, sum, x int) { fn.V("bfmmla", sum, x, x+4) })
	outer(f)
	outerPeak(f)
	write(f, "kernel")
}

// fewRowsARM writes the kernels of few rows of arm64.
func fewRowsARM() {
	f := &asmgen.File{Package: "gemm", Generator: "gen/main.go", Arch: "arm64"}
	for _, l := range []neonLoader{neonF32, neonRounded, neonBF16} {
		neonFewRow(f, l)
		neonFewRows(f, l, 4)
		neonFewRows(f, l, 8)
	}
	for _, l := range []quadLoader{quadF32, quadBF16} {
		neonFewQuads(f, l, 1)
		neonFewQuads(f, l, 4)
		neonFewQuads(f, l, 8)
	}
	write(f, "few")
}

// packingARM writes the copies and stores of arm64.
func packingARM() {
	f := &asmgen.File{Package: "gemm", Generator: "gen/main.go", Arch: "arm64"}
	for _, l := range []neonLoader{neonF32, neonRounded, neonBF16, neonF16} {
		neonCopyRows(f, l)
		neonTransposeRows(f, l)
	}
	for _, l := range []quadLoader{quadF32, quadBF16} {
		neonCopyQuads(f, l)
		neonTransposeQuads(f, l)
		neonPanelQuads(f, l)
	}
	neonStoreBF16(f)
	write(f, "pack")
}
