package gemm

import (
	"unsafe"

	"anneal/internal/isa"
	"anneal/tensor"
)

func f32Tile(t isa.Tier) tile[float32] {
	switch {
	case t < isa.NEON:
		return genericTile[float32]()
	case t == isa.SME:
		return tile[float32]{sizes: outerSizes, outer: outerSME, few: fewNEON}
	}
	return parts[float32]{
		6, 16, kernelRowsNEON6x16, kernelColsNEON6x16, kernelRowsNEON4x16, kernelColsNEON4x16,
	}.tile(vectorSizes(12, 1), fewNEON)
}

// outerSizes are the sizes for outer products. A panel of a and one of b, of 64 KB each, fit in the first-level cache
// of M4, and K blocks are deep, so that sums seldom move. Costs are those of 2 TFLOP/s, and of packing by NEON.
var outerSizes = sizes{
	mr: 32, panel: colStep, group: 1, run: 1, maxK: 512, stepK: 8, maxN: 1024, maxC: 528 * 384,
	costs: costs{
		product: 0.001, rowsA: 0.06, colsA: 0.04, rowsB: 0.06, colsB: 0.04, spill: 0.02, fetch: 0.02, mirror: 1,
		maxL2: 1 << 20,
	},
}

func f64Tile(isa.Tier) tile[float64] { return genericTile[float64]() }

// bf16Tile returns the kernels and the packing for BF16 operands of the bf16 tier, which multiplies quads by BFMMLA.
// That flushes subnormal numbers, and rounds sums to odd.
func bf16Tile(t isa.Tier) (tile[float32], packer[float32], bool) {
	sizes := vectorSizes(12, 2)
	sizes.run = 2
	return parts[float32]{
		6, 16, kernelRowsBFMMLA6x16, kernelColsBFMMLA6x16, kernelRowsBFMMLA4x16, kernelColsBFMMLA4x16,
	}.tile(sizes, fewBFMMLA), quadPacker(), t == isa.BF16
}

var (
	fewPlain   = fewOfNEON(fewF32NEONx1, fewF32NEONx4, fewF32NEONx8, 4)
	fewRounded = fewOfNEON(fewF32RoundedNEONx1, fewF32RoundedNEONx4, fewF32RoundedNEONx8, 4)
	fewNarrow  = fewOfNEON(fewBF16NEONx1, fewBF16NEONx4, fewBF16NEONx8, 8)

	fewQuads       = fewOfNEON(fewF32Quadx1, fewF32Quadx4, fewF32Quadx8, 4)
	fewNarrowQuads = fewOfNEON(fewBF16Quadx1, fewBF16Quadx4, fewBF16Quadx8, 8)
)

// fewOfNEON returns the kernels that process step elements of k at a time.
func fewOfNEON(one, four, eight few[float32], step int) *fewKernels[float32] {
	return &fewKernels[float32]{[]fewKernel[float32]{{one, 1, 1, 16}, {four, 4, 4, 16}, {eight, 8, 8, 8}}, step}
}

// fewNEON selects the kernels for b. FP16 and TF32 have none.
func fewNEON(b source) *fewKernels[float32] {
	switch {
	case b.dtype == tensor.BF16:
		return fewNarrow
	case b.dtype == tensor.F32 && b.round == tensor.F32:
		return fewPlain
	case b.dtype == tensor.F32 && b.round == tensor.BF16:
		return fewRounded
	}
	return nil
}

func fewBFMMLA(b source) *fewKernels[float32] {
	if b.dtype == tensor.BF16 {
		return fewNarrowQuads
	}
	return fewQuads
}

// copiersNEON lack FP32 that is rounded to FP16 or TF32.
var copiersNEON = blockCopiers{
	plain:   &blockCopier{copyRowsF32, transposeF32, nil},
	rounded: &blockCopier{copyRowsF32Rounded, transposeF32Rounded, nil},
	narrow:  &blockCopier{copyRowsBF16, transposeBF16, nil},
	half:    &blockCopier{copyRowsF16, transposeF16, nil},
}

func f32Packer(t isa.Tier) packer[float32] {
	if t < isa.NEON {
		return genericPacker[float32]()
	}
	return blockPacker(&copiersNEON, 4)
}

// f32Store returns the store of a tier. Its assembly stores groups of eight columns to a BF16 result.
func f32Store(t isa.Tier) store[float32] {
	if t < isa.NEON {
		return put[float32]
	}
	return func(dst *sink, to unsafe.Pointer, c *float32, rows, cols int) {
		whole := 0
		if dst.dtype == tensor.BF16 && cols >= 8 {
			whole = cols &^ 7
			add := 0
			if dst.add {
				add = 1
			}
			storeBF16(to, dst.ld, c, rows, whole, add, float32(dst.scale))
		}
		if whole < cols {
			put(dst, unsafe.Add(to, whole*dst.dtype.Size()), at(c, whole), rows, cols-whole)
		}
	}
}

// peakLoop returns a loop that multiplies at the tier's best rate for operands of a precision, and its operations per
// iteration.
func peakLoop(t isa.Tier, operand tensor.DType) (loop func(n int), flops int) {
	switch {
	case operand == tensor.F64:
	case t == isa.BF16 && operand == tensor.BF16:
		return peakBFMMLA, 4 * 24 * 32
	case t == isa.SME && operand != tensor.F64:
		return peakSME, 16 * 2 * 16 * 16
	case t >= isa.NEON:
		return peakNEON, 4 * 24 * 8
	}
	return genericPeak, genericPeakFLOPs
}
