package gemm

import (
	"unsafe"

	"anneal/internal/isa"
	"anneal/tensor"
)

// Blocked returns the blocked format in which products of few rows have the same bits as with F32 weights, but are
// faster. There is none for BF16 on tiles, which sum in another order than the kernels of blocks.
func Blocked(t isa.Tier, operand tensor.DType) tensor.DType {
	switch {
	case operand == tensor.F32 && t >= isa.AVX2:
		return tensor.BlockedF32
	case operand == tensor.BF16 && (t == isa.AVX2 || t == isa.AVX512):
		return tensor.BlockedBF16
	case operand == tensor.BF16 && t == isa.AVX512BF16:
		return tensor.BlockedPairs
	}
	return tensor.Invalid
}

// Kernels of few rows for blocked formats, of AVX-512, of AVX2, and of pairs.
var (
	fewBlocked = map[tensor.DType]*fewKernels[float32]{
		tensor.BlockedF32:  fewOfBlocks(fewBlockedF32AVX512x1, fewBlockedF32AVX512x4, fewBlockedF32AVX512x8),
		tensor.BlockedBF16: fewOfBlocks(fewBlockedBF16AVX512x1, fewBlockedBF16AVX512x4, fewBlockedBF16AVX512x8),
		tensor.Q8:          fewOfBlocks(fewQ8AVX512x1, fewQ8AVX512x4, fewQ8AVX512x8),
	}
	fewBlockedAVX2 = map[tensor.DType]*fewKernels[float32]{
		tensor.BlockedF32:  fewOfBlocksAVX2(fewBlockedF32AVX2x1, fewBlockedF32AVX2xN, fewBlockedF32AVX2xN),
		tensor.BlockedBF16: fewOfBlocksAVX2(fewBlockedBF16AVX2x1, fewBlockedBF16AVX2xN, widened(tensor.BlockedBF16)),
		tensor.Q8:          fewOfBlocksAVX2(fewQ8AVX2x1, fewQ8AVX2xN, widened(tensor.Q8)),
	}
	fewBlockedPairs = fewOfBlocks(fewBlockedPairsDotx1, fewBlockedPairsDotx4, fewBlockedPairsDotx8)
)

// fewOfBlocks returns the kernels for one, four and eight rows, and fewOfBlocksAVX2 those for one, up to eight and
// more.
func fewOfBlocks(one, four, eight few[float32]) *fewKernels[float32] {
	return &fewKernels[float32]{[]fewKernel[float32]{
		{one, 1, 1, tensor.Side}, {four, 4, 4, tensor.Side}, {eight, 8, 8, tensor.Side},
	}, tensor.Side}
}

func fewOfBlocksAVX2(one, more, many few[float32]) *fewKernels[float32] {
	return &fewKernels[float32]{[]fewKernel[float32]{
		{one, 1, 1, tensor.Side}, {more, 8, 4, tensor.Side}, {many, fewRows, 4, tensor.Side},
	}, tensor.Side}
}

// widened returns a kernel of AVX2 that converts a K block of a format to FP32 once, for all rows. With eight rows or
// fewer, to convert in each sweep is faster.
func widened(d tensor.DType) few[float32] {
	return func(c, a *float32, rows int, b unsafe.Pointer, ldb, steps, add int, next uintptr, spare *float32) {
		numbers := unsafe.Slice(spare, spareWords+steps*tensor.Side)[spareWords:]
		for i, part := range unblockAVX2[d] {
			part(&numbers[i*tensor.Side/2], tensor.Side, b, ldb, steps)
		}
		fewBlockedF32AVX2xN(c, a, rows, unsafe.Pointer(&numbers[0]), 0, steps, add, next, spare)
	}
}

// An unblock packs steps steps of k of a panel of blocks, from step ldb of the block b on.
type unblock func(dst *float32, ldd int, b unsafe.Pointer, ldb, steps int)

var (
	unblockAVX512 = map[tensor.DType][]unblock{
		tensor.BlockedF32: {unblockBlockedF32AVX512}, tensor.BlockedBF16: {unblockBlockedBF16AVX512},
		tensor.Q8: {unblockQ8AVX512},
	}
	unblockAVX2 = map[tensor.DType][]unblock{
		tensor.BlockedF32:  {unblockBlockedF32AVX2Left, unblockBlockedF32AVX2Right},
		tensor.BlockedBF16: {unblockBlockedBF16AVX2Left, unblockBlockedBF16AVX2Right},
		tensor.Q8:          {unblockQ8AVX2Left, unblockQ8AVX2Right},
	}
	unblockDot = map[tensor.DType][]unblock{tensor.BlockedPairs: {unblockBlockedPairsDot}}
)

// unblocking returns a packer that packs blocked formats with the kernels of the parts of a block, or in Go if a format
// has none. Panels begin with a part, and blocks of K are multiples of the four steps that a kernel takes at a time.
func unblocking(p packer[float32], kernels map[tensor.DType][]unblock) packer[float32] {
	other := p.transpose
	p.transpose = func(dst *float32, ldd int, src source, rows, cols int) {
		switch parts := kernels[src.dtype]; {
		case parts != nil:
			part := src.i % tensor.Side * len(parts) / tensor.Side
			parts[part](dst, ldd, src.block(0), src.j%tensor.Side, cols)
		case src.dtype.Blocked():
			transpose(dst, ldd, src, rows, cols)
		default:
			other(dst, ldd, src, rows, cols)
		}
	}
	return p
}
