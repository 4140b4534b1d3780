package gemm

import (
	"unsafe"

	"anneal/internal/isa"
	"anneal/tensor"
)

func f32Tile(t isa.Tier) tile[float32] {
	switch {
	case t >= isa.AVX512:
		return tile[float32]{
			sizes: vectorSizes(12, 1), rows: kernelRowsAVX51212x32, cols: kernelColsAVX51212x32,
			rows4: kernelRowsAVX5124x32, cols4: kernelColsAVX5124x32, few: fewAVX512,
		}
	case t == isa.AVX2:
		return tile[float32]{
			sizes: partSizes(), rows: kernelRowsAVX212x32, cols: kernelColsAVX212x32,
			rows4: kernelRowsAVX24x32, cols4: kernelColsAVX24x32, few: fewAVX2,
		}
	default:
		return genericTile[float32]()
	}
}

// partSizes are the sizes of kernels whose registers hold half of the columns of a tile. A panel of b with these
// columns, 12 KB, stays in a first-level cache of 32 KB while all rows of a block pass, 9 KB a tile.
func partSizes() sizes {
	z := vectorSizes(narrowPanel, 1)
	z.side, z.panel, z.high = narrowPanel, colStep/2, 72
	return z
}

// f64Tile returns the kernels for operands in FP64, which portable code packs.
func f64Tile(t isa.Tier) tile[float64] {
	none := func(source) *fewKernels[float64] { return nil }
	switch {
	case t >= isa.AVX512:
		return parts[float64]{
			12, 16, kernelRowsF64AVX51212x16, kernelColsF64AVX51212x16,
			kernelRowsF64AVX5124x16, kernelColsF64AVX5124x16,
		}.tile(vectorSizes(12, 1), none)
	case t == isa.AVX2:
		return parts[float64]{
			6, 8, kernelRowsF64AVX26x8, kernelColsF64AVX26x8, kernelRowsF64AVX24x8, kernelColsF64AVX24x8,
		}.tile(vectorSizes(12, 1), none)
	default:
		return genericTile[float64]()
	}
}

// fewLevel is the level of the cache to which kernels of few rows prefetch. Intel's cores can wait for 48 lines at the
// second level and for 16 at the first, which are too few for the latency of their memory; on AMD's cores the first
// level is faster.
var fewLevel = func() int {
	if isa.GenuineIntel() {
		return 2
	}
	return 1
}()

func fewAVX512(b source) *fewKernels[float32] {
	if b.dtype.Blocked() {
		return fewBlocked[b.dtype]
	}
	return fewOf(b, &fewPlain[fewLevel-1], &fewRounded[fewLevel-1], &fewNarrow[fewLevel-1])
}

func fewAVX2(b source) *fewKernels[float32] {
	if b.dtype.Blocked() {
		return fewBlockedAVX2[b.dtype]
	}
	return fewOf(b, &fewPlainAVX2, &fewRoundedAVX2, &fewNarrowAVX2)
}

// Kernels of AVX-512, for each level that they may prefetch to.
var (
	fewPlain = [...]fewKernels[float32]{
		fewWide(fewF32AVX512x1L1, fewF32AVX512x4L1, fewF32AVX512x8L1, 4),
		fewWide(fewF32AVX512x1L2, fewF32AVX512x4L2, fewF32AVX512x8L2, 4),
	}
	fewRounded = [...]fewKernels[float32]{
		fewWide(fewF32RoundedAVX512x1L1, fewF32RoundedAVX512x4L1, fewF32RoundedAVX512x8L1, 4),
		fewWide(fewF32RoundedAVX512x1L2, fewF32RoundedAVX512x4L2, fewF32RoundedAVX512x8L2, 4),
	}
	fewNarrow = [...]fewKernels[float32]{
		fewWide(fewBF16AVX512x1L1, fewBF16AVX512x4L1, fewBF16AVX512x8L1, 8),
		fewWide(fewBF16AVX512x1L2, fewBF16AVX512x4L2, fewBF16AVX512x8L2, 8),
	}
	fewPairs = [...]fewKernels[float32]{
		fewWide(fewF32PairDotx1L1, fewF32PairDotx4L1, fewF32PairDotx8L1, 8),
		fewWide(fewF32PairDotx1L2, fewF32PairDotx4L2, fewF32PairDotx8L2, 8),
	}
	fewNarrowPairs = [...]fewKernels[float32]{
		fewWide(fewBF16PairDotx1L1, fewBF16PairDotx4L1, fewBF16PairDotx8L1, 8),
		fewWide(fewBF16PairDotx1L2, fewBF16PairDotx4L2, fewBF16PairDotx8L2, 8),
	}
)

var (
	fewPlainAVX2   = fewHalves(fewF32AVX2x1L1, fewF32AVX2x4L1, 4)
	fewRoundedAVX2 = fewHalves(fewF32RoundedAVX2x1L1, fewF32RoundedAVX2x4L1, 4)
	fewNarrowAVX2  = fewHalves(fewBF16AVX2x1L1, fewBF16AVX2x4L1, 8)
)

// fewWide returns the kernels of AVX-512 that process step elements of k at a time.
func fewWide(one, four, eight few[float32], step int) fewKernels[float32] {
	return fewKernels[float32]{[]fewKernel[float32]{{one, 1, 1, 16}, {four, 4, 4, 16}, {eight, 8, 8, 16}}, step}
}

// fewHalves returns the kernels of AVX2.
func fewHalves(one, four few[float32], step int) fewKernels[float32] {
	return fewKernels[float32]{[]fewKernel[float32]{{one, 1, 1, 16}, {four, 4, 4, 16}}, step}
}

// fewOf selects the kernels for b. FP16 and TF32 have none.
func fewOf(b source, plain, rounded, narrow *fewKernels[float32]) *fewKernels[float32] {
	switch {
	case b.dtype == tensor.BF16:
		return narrow
	case b.dtype == tensor.F32 && b.round == tensor.F32:
		return plain
	case b.dtype == tensor.F32 && b.round == tensor.BF16:
		return rounded
	}
	return nil
}

func fewDot(b source) *fewKernels[float32] {
	if b.dtype == tensor.BlockedPairs {
		return fewBlockedPairs
	}
	return fewOf(b, nil, &fewPairs[fewLevel-1], &fewNarrowPairs[fewLevel-1])
}

func f32Packer(t isa.Tier) packer[float32] {
	switch {
	case t == isa.AVX2:
		return unblocking(blockPacker(&copiersAVX2, 8), unblockAVX2)
	case t < isa.AVX512:
		return genericPacker[float32]()
	}
	plain := copier{copyRowsF32, transposeF32, panelsF3232, panelsF3248}
	rounded := copier{copyRowsF32Rounded, transposeF32Rounded, panelsF32Rounded32, panelsF32Rounded48}
	narrow := copier{copyRowsBF16, transposeBF16, panelsBF1632, panelsBF1648}
	ten := copier{copyRowsTF32, transposeTF32, panelsTF3232, panelsTF3248}
	half := copier{copyRowsF16, transposeF16, panelsF1632, panelsF1648}
	halved := copier{copyRowsF32Half, transposeF32Half, panelsF32Half32, panelsF32Half48}
	return unblocking(vectorPacker(func(s source) *copier {
		switch {
		case s.dtype == tensor.BF16:
			return &narrow
		case s.dtype == tensor.F16:
			return &half
		case s.round == tensor.BF16:
			return &rounded
		case s.round == tensor.F16:
			return &halved
		case s.round == tensor.TF32:
			return &ten
		default:
			return &plain
		}
	}), unblockAVX512)
}

// bf16Tile returns the kernels and the packing for BF16 operands in tiers that do not widen them.
func bf16Tile(t isa.Tier) (tile[float32], packer[float32], bool) {
	switch t {
	case isa.AMX:
		return tilesTile(), tilesPacker(), true
	case isa.AVX512BF16:
		return dotTile(), dotPacker(), true
	}
	return tile[float32]{}, packer[float32]{}, false
}

// The avx512bf16 tier multiplies pairs of BF16.
func dotTile() tile[float32] {
	return tile[float32]{
		sizes: vectorSizes(12, 2), rows: kernelRowsDot12x32, cols: kernelColsDot12x32,
		rows4: kernelRowsDot4x32, cols4: kernelColsDot4x32, few: fewDot,
	}
}

func dotPacker() packer[float32] {
	wide := copier{copyRowsF32Pair, transposeF32Pair, panelsF32Pair32, panelsF32Pair48}
	narrow := copier{copyRowsBF16Pair, transposeBF16Pair, panelsBF16Pair32, panelsBF16Pair48}
	return unblocking(vectorPacker(func(s source) *copier {
		if s.dtype == tensor.BF16 {
			return &narrow
		}
		return &wide
	}), unblockDot)
}

// A copier packs one kind of source by AVX-512.
type copier struct {
	rows     func(dst *float32, ldd int, src unsafe.Pointer, lds, rows, cols int)
	turn     func(dst *float32, ldd int, src unsafe.Pointer, lds, rows, cols int) // at most 16 rows
	panels32 func(dst *float32, stride int, src unsafe.Pointer, lds, rows, cols int)
	panels48 func(dst *float32, stride int, src unsafe.Pointer, lds, rows, cols int)
}

func vectorPacker(pick func(source) *copier) packer[float32] {
	return packer[float32]{
		copyRows: func(dst *float32, ldd int, src source, rows, cols int) {
			pick(src).rows(dst, ldd, src.p, src.ld, rows, cols)
		},
		transpose: func(dst *float32, ldd int, src source, rows, cols int) {
			turn := pick(src).turn
			for i := 0; i < rows; i += 16 {
				turn(at(dst, i), ldd, src.at(i, 0).p, src.ld, min(16, rows-i), cols)
			}
		},
		panels: func(dst *float32, width, stride int, src source, rows, cols int) {
			c := pick(src)
			run := c.panels32
			if width == rowsTN {
				run = c.panels48
			}
			run(dst, stride, src.p, src.ld, rows, cols)
		},
	}
}

func f32Store(t isa.Tier) store[float32] {
	switch {
	case t == isa.AVX2:
		return storeAVX2
	case t < isa.AVX512:
		return put[float32]
	}
	return func(dst *sink, to unsafe.Pointer, c *float32, rows, cols int) {
		add := 0
		if dst.add {
			add = 1
		}
		switch dst.dtype {
		case tensor.BF16:
			storeBF16(to, dst.ld, c, rows, cols, add, float32(dst.scale))
		case tensor.F16:
			storeF16(to, dst.ld, c, rows, cols, add, float32(dst.scale))
		default:
			storeF32(to, dst.ld, c, rows, cols, add, float32(dst.scale))
		}
	}
}

// paired interleaves the halves of a vector of BF16, elements i and 16+i, for fewF32Pair.
//
//lint:ignore U1000 assembly reads it
var paired = func() (order [32]uint16) {
	for i := range order {
		order[i] = uint16(i/2 + i%2*16)
	}
	return order
}()

// rounding holds the constants for rounding to BF16 on AVX2: the last bit, the rounding addend, the mask of the kept
// bits, and the quiet NaN.
//
//lint:ignore U1000 assembly reads it
var rounding = func() (rows [4][8]uint32) {
	for lane := range 8 {
		rows[0][lane], rows[1][lane], rows[2][lane], rows[3][lane] = 1, 0x7fff, 0xffff0000, 0x7fc00000
	}
	return rows
}()

// roundingTF32 holds the constants for rounding to TF32 on AVX2: the rounding addend, the mask of the kept bits, and
// the exponent of NaN and infinities.
//
//lint:ignore U1000 assembly reads it
var roundingTF32 = func() (rows [3][8]uint32) {
	for lane := range 8 {
		rows[0][lane], rows[1][lane], rows[2][lane] = 0x1000, 0xffffe000, 0x7f800000
	}
	return rows
}()

// odd selects the upper halves of the words of two vectors, for storeBF16.
//
//lint:ignore U1000 assembly reads it
var odd = [32]uint16{
	1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
	33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63,
}

// peakLoop returns a loop that multiplies at the tier's best rate for operands of a precision, and its operations per
// iteration.
func peakLoop(t isa.Tier, operand tensor.DType) (loop func(n int), flops int) {
	switch {
	case operand == tensor.F64 && t >= isa.AVX512:
		return peakF64AVX512, 4 * 24 * 16
	case operand == tensor.F64 && t == isa.AVX2:
		return peakF64AVX2, 4 * 12 * 8
	case operand == tensor.F64:
	case t == isa.AMX && operand == tensor.BF16:
		return func(n int) { peakTiles(unsafe.Pointer(&tileConfigs[32]), n) }, 16 * 2 * 16 * 16 * 32
	case t == isa.AVX512BF16 && operand == tensor.BF16:
		return peakDot, 4 * 24 * 64
	case t >= isa.AVX512:
		return peakAVX512, 4 * 24 * 32
	case t == isa.AVX2:
		return peakAVX2, 4 * 12 * 16
	}
	return genericPeak, genericPeakFLOPs
}
