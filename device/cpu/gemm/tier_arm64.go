package gemm

import (
	"anneal/internal/isa"
	"anneal/tensor"
)

func f32Tile(t isa.Tier) tile[float32] {
	if t < isa.NEON {
		return genericTile[float32]()
	}
	return tile[float32]{
		sizes: vectorSizes(12, 1), rows: quarters(kernelRowsNEON6x16, false), cols: quarters(kernelColsNEON6x16, true),
		rows4: halves(kernelRowsNEON4x16), cols4: halves(kernelColsNEON4x16),
		few: func(source) *fewKernels[float32] { return nil },
	}
}

func f32Packer(isa.Tier) packer[float32] { return genericPacker[float32]() }

func f32Store(isa.Tier) store[float32] { return put[float32] }

// bf16Tile returns the kernels and the packing for BF16 operands of the bf16 tier, which multiplies pairs by BFDOT.
// That flushes subnormal numbers, and rounds sums to odd.
func bf16Tile(t isa.Tier) (tile[float32], packer[float32], bool) {
	return tile[float32]{
		sizes: vectorSizes(12, 2), rows: quarters(kernelRowsBFDOT6x16, false),
		cols: quarters(kernelColsBFDOT6x16, true), rows4: halves(kernelRowsBFDOT4x16),
		cols4: halves(kernelColsBFDOT4x16), few: func(source) *fewKernels[float32] { return nil },
	}, pairPacker(), t == isa.BF16
}

// peakLoop returns a loop that multiplies at the tier's best rate for operands of a precision, and its operations per
// iteration.
func peakLoop(t isa.Tier, operand tensor.DType) (loop func(n int), flops int) {
	switch {
	case operand == tensor.F64:
	case t == isa.BF16 && operand == tensor.BF16:
		return peakBFDOT, 4 * 24 * 16
	case t >= isa.NEON:
		return peakNEON, 4 * 24 * 8
	}
	return genericPeak, genericPeakFLOPs
}
