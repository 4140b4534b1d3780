package gemm

import (
	"unsafe"

	"anneal/tensor"
)

var copiersAVX2 = blockCopiers{
	plain:   &blockCopier{copyRowsF32AVX2, transposeF32AVX2, panelsF32AVX2},
	rounded: &blockCopier{copyRowsF32RoundedAVX2, transposeF32RoundedAVX2, panelsF32RoundedAVX2},
	narrow:  &blockCopier{copyRowsBF16AVX2, transposeBF16AVX2, panelsBF16AVX2},
	half:    &blockCopier{copyRowsF16AVX2, transposeF16AVX2, panelsF16AVX2},
	halved:  &blockCopier{copyRowsF32HalfAVX2, transposeF32HalfAVX2, panelsF32HalfAVX2},
	ten:     &blockCopier{copyRowsTF32AVX2, transposeTF32AVX2, panelsTF32AVX2},
}

// storeAVX2 is put in AVX2, for whole rows of a tile.
func storeAVX2(dst *sink, to unsafe.Pointer, c *float32, rows, cols int) {
	add := 0
	if dst.add {
		add = 1
	}
	switch {
	case cols < colStep || rows == 0:
		put(dst, to, c, rows, cols)
	case dst.dtype == tensor.BF16:
		storeBF16AVX2(to, dst.ld, c, rows, add, float32(dst.scale))
	case dst.dtype == tensor.F16:
		storeF16AVX2(to, dst.ld, c, rows, add, float32(dst.scale))
	default:
		storeF32AVX2(to, dst.ld, c, rows, add, float32(dst.scale))
	}
}
