package gemm

import (
	"unsafe"

	"anneal/tensor"
)

// tileConfigs holds the operands of LDTILECFG by the number of rows of a strip: tiles of 16 rows of 64 bytes, except
// that those of a and of sums have only the rows of the strip.
var tileConfigs = func() (configs [33][64]byte) {
	for rows := range configs {
		upper, lower := min(rows, 16), max(rows-16, 0)
		configs[rows] = tileConfig([8][2]int{
			{upper, 64}, {upper, 64}, {lower, 64}, {lower, 64}, {upper, 64}, {lower, 64}, {16, 64}, {16, 64},
		})
	}
	return configs
}()

// fewConfigs holds the same for products with few rows of a, by their number. These rows are the columns of the sums,
// T0 and T1, and of T2.
var fewConfigs = func() (configs [17][64]byte) {
	for rows := range configs {
		configs[rows] = tileConfig([8][2]int{{16, 4 * rows}, {16, 4 * rows}, {16, 4 * rows}, {16, 64}, {16, 64}})
	}
	return configs
}()

// tileConfig returns a tile configuration from the rows of each tile and the bytes per row.
func tileConfig(tiles [8][2]int) (c [64]byte) {
	c[0] = 1
	for i, t := range tiles {
		if t[0] > 0 && t[1] > 0 {
			c[16+2*i], c[48+i] = byte(t[1]), byte(t[0])
		}
	}
	return c
}

// tilesTile multiplies pairs of BF16 a strip at a time.
func tilesTile() tile[float32] {
	return tile[float32]{sizes: tileSizes, strip: runTiles, few: fewTiles}
}

func runTiles(r *strip) {
	kernel := tilesHighSum
	switch {
	case r.rows <= 16 && r.round:
		kernel = tilesLowRound
	case r.rows <= 16:
		kernel = tilesLowSum
	case r.round:
		kernel = tilesHighRound
	}
	kernel(unsafe.Pointer(&tileConfigs[r.rows]), r.a, r.lda, r.b, r.strideB, r.steps, r.panels,
		r.from, r.fromRow, r.fromPanel, r.to, r.toRow, r.toPanel, r.rows, r.block,
		r.ahead.p, r.ahead.line, r.ahead.step, r.ahead.panel, r.ahead.panels, 0)
}

// tilesPacker packs like dotPacker. Columns of a become rows directly if they are whole vectors, otherwise through
// panels.
func tilesPacker() packer[float32] {
	p := dotPacker()
	p.columns = func(dst *float32, ldd int, src source, k, cols int, spare []float32) {
		if src.dtype == tensor.BF16 && k%32 == 0 && cols%8 == 0 {
			columnsBF16(dst, ldd, src.p, src.ld, k, cols)
			return
		}
		words := ceil(k, 2)
		for j := 0; j < cols; j += colStep {
			wide := min(colStep, cols-j)
			p.panels(&spare[0], colStep, 0, src.at(0, j), k, wide)
			for w := 0; w < words; w += 16 {
				transposeF32(at(dst, j*ldd+w), ldd, unsafe.Pointer(&spare[w*colStep]), colStep, min(16, words-w), wide)
			}
		}
	}
	return p
}

func fewTiles(b source) *fewKernels[float32] {
	return fewOf(b, nil, &fewTilesWide, &fewTilesNarrow)
}

var (
	fewTilesWide   = fewOnTiles(fewTilesF32Pair, 4)
	fewTilesNarrow = fewOnTiles(fewTilesBF16Pair, 2)
)

// fewOnTiles builds kernels for few rows from a kernel on tiles, whose sums are transposed, for elements of b of the
// given size in bytes.
func fewOnTiles(kernel func(config unsafe.Pointer, c, a *float32, row int, b unsafe.Pointer, ldb, steps int,
	block unsafe.Pointer, next uintptr), size int) fewKernels[float32] {
	turn := func(c, a *float32, rows int, b unsafe.Pointer, ldb, steps, add int, next uintptr, spare *float32) {
		sums, turned := unsafe.Slice(c, rows*colStep), unsafe.Slice(spare, rows*colStep)
		clear(turned)
		if add != 0 {
			for i := range rows {
				for j, v := range sums[i*colStep:][:colStep] {
					turned[j*rows+i] = v
				}
			}
		}
		kernel(unsafe.Pointer(&fewConfigs[rows]), &turned[0], a, 4*rows, b, ldb*size, steps*fewSteps/(32*size),
			unsafe.Pointer(at(spare, fewRows*colStep)), next)
		for i := range rows {
			row := sums[i*colStep:][:colStep]
			for j := range row {
				row[j] = turned[j*rows+i]
			}
		}
	}
	return fewKernels[float32]{[]fewKernel[float32]{{turn, fewRows, 1, colStep}}, 32}
}
