package gemm

import (
	"unsafe"

	"anneal/tensor"
)

// A copier8 packs one kind of source by AVX2, whole vectors of 8 elements; transpose takes 8 rows.
type copier8 struct {
	copyRows, transpose func(dst *float32, ldd int, src unsafe.Pointer, lds, rows, cols int)
}

var (
	plain8   = copier8{copyRowsF32AVX2, transposeF32AVX2}
	rounded8 = copier8{copyRowsF32RoundedAVX2, transposeF32RoundedAVX2}
	narrow8  = copier8{copyRowsBF16AVX2, transposeBF16AVX2}
	ten8     = copier8{copyRowsTF32AVX2, transposeTF32AVX2}
	half8    = copier8{copyRowsF16AVX2, transposeF16AVX2}
	halved8  = copier8{copyRowsF32HalfAVX2, transposeF32HalfAVX2}
)

func copier8Of(s source) *copier8 {
	switch {
	case s.dtype == tensor.BF16:
		return &narrow8
	case s.dtype == tensor.F16:
		return &half8
	case s.round == tensor.BF16:
		return &rounded8
	case s.round == tensor.F16:
		return &halved8
	case s.round == tensor.TF32:
		return &ten8
	}
	return &plain8
}

func packerAVX2() packer[float32] {
	return packer[float32]{
		copyRows: copyRows8, transpose: transpose8,
		panels: func(dst *float32, width, stride int, src source, rows, cols int) {
			for j := 0; j < cols; j += width {
				copyRows8(at(dst, j/width*stride), width, src.at(0, j), rows, min(width, cols-j))
			}
		},
	}
}

func copyRows8(dst *float32, ldd int, src source, rows, cols int) {
	whole := cols &^ 7
	if whole > 0 {
		copier8Of(src).copyRows(dst, ldd, src.p, src.ld, rows, whole)
	}
	if whole < cols {
		copyRows(at(dst, whole), ldd, src.at(0, whole), rows, cols-whole)
	}
}

func transpose8(dst *float32, ldd int, src source, rows, cols int) {
	turn, whole := copier8Of(src).transpose, cols&^7
	i := 0
	for ; i+8 <= rows; i += 8 {
		turn(at(dst, i), ldd, src.at(i, 0).p, src.ld, 8, whole)
	}
	if whole < cols {
		transpose(at(dst, whole*ldd), ldd, src.at(0, whole), i, cols-whole)
	}
	if i < rows {
		transpose(at(dst, i), ldd, src.at(i, 0), rows-i, cols)
	}
}

// storeAVX2 is put by AVX2, for whole rows of a tile.
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
