package gemm

import (
	"unsafe"

	"anneal/internal/isa"
	"anneal/tensor"
)

// A copying is a function of the assembly that packs whole blocks: rows and columns are multiples of some number.
type copying func(dst *float32, ldd int, src unsafe.Pointer, lds, rows, cols int)

// A copier packs one kind of source.
type copier struct {
	rows copying // 1 row, 8 columns
	turn copying // 4 rows, 4 columns
}

var (
	copyPlain   = copier{copyRowsF32, transposeF32}
	copyRounded = copier{copyRowsF32Rounded, transposeF32Rounded}
	copyNarrow  = copier{copyRowsBF16, transposeBF16}
	copyHalf    = copier{copyRowsF16, transposeF16}
)

// copierOf returns the copier of a source, or nil for those that portable Go packs: what is rounded to FP16 or TF32.
func copierOf(s source) *copier {
	switch {
	case s.dtype == tensor.BF16:
		return &copyNarrow
	case s.dtype == tensor.F16:
		return &copyHalf
	case s.round == tensor.BF16:
		return &copyRounded
	case s.round == tensor.F32:
		return &copyPlain
	}
	return nil
}

func f32Packer(t isa.Tier) packer[float32] {
	if t < isa.NEON {
		return genericPacker[float32]()
	}
	return packer[float32]{
		copyRows: copyNEON,
		transpose: func(dst *float32, ldd int, src source, rows, cols int) {
			r, k := 0, 0
			if c := copierOf(src); c != nil && rows >= 4 && cols >= 4 {
				r, k = rows&^3, cols&^3
				c.turn(dst, ldd, src.p, src.ld, r, k)
			}
			if k < cols && r > 0 {
				transpose(at(dst, k*ldd), ldd, src.at(0, k), r, cols-k)
			}
			if r < rows {
				transpose(at(dst, r), ldd, src.at(r, 0), rows-r, cols)
			}
		},
		panels: func(dst *float32, width, stride int, src source, rows, cols int) {
			for j := 0; j < cols; j += width {
				copyNEON(at(dst, j/width*stride), width, src.at(0, j), rows, min(width, cols-j))
			}
		},
	}
}

// copyNEON is copyRows. Its assembly takes whole eights of columns.
func copyNEON(dst *float32, ldd int, src source, rows, cols int) {
	k := 0
	if c := copierOf(src); c != nil && cols >= 8 {
		k = cols &^ 7
		c.rows(dst, ldd, src.p, src.ld, rows, k)
	}
	if k < cols {
		copyRows(at(dst, k), ldd, src.at(0, k), rows, cols-k)
	}
}
