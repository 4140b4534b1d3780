//go:build amd64 || arm64

package gemm

import (
	"unsafe"

	"anneal/tensor"
)

// A copying is a function of the assembly that packs whole blocks: rows and columns are multiples of some number.
type copying func(dst *float32, ldd int, src unsafe.Pointer, lds, rows, cols int)

// A blockCopier packs one kind of source in assembly without masks.
type blockCopier struct {
	rows   copying // blocks of 1 row and 8 columns
	turn   copying // blocks of as many rows and columns as the tier's packer says
	panels copying // panels of narrowPanel columns, ldd words apart; may be nil
}

// narrowPanel is the width of the panels for which there is assembly, besides panels of whole vectors.
const narrowPanel = 12

// blockCopiers are the copiers of a tier; portable Go packs the sources whose copier is nil.
type blockCopiers struct{ plain, rounded, narrow, half, halved, ten *blockCopier }

func (c *blockCopiers) of(s source) *blockCopier {
	switch {
	case s.dtype.Blocked():
		return nil
	case s.dtype == tensor.BF16:
		return c.narrow
	case s.dtype == tensor.F16:
		return c.half
	case s.round == tensor.BF16:
		return c.rounded
	case s.round == tensor.F16:
		return c.halved
	case s.round == tensor.TF32:
		return c.ten
	}
	return c.plain
}

// blockPacker packs whole blocks with copiers, whose turn takes side×side elements, and the rest in Go.
func blockPacker(copiers *blockCopiers, side int) packer[float32] {
	along := func(dst *float32, ldd int, src source, rows, cols int) {
		k := 0
		if c := copiers.of(src); c != nil && cols >= 8 {
			k = cols &^ 7
			c.rows(dst, ldd, src.p, src.ld, rows, k)
		}
		if k < cols {
			copyRows(at(dst, k), ldd, src.at(0, k), rows, cols-k)
		}
	}
	return packer[float32]{
		copyRows: along,
		transpose: func(dst *float32, ldd int, src source, rows, cols int) {
			r, k := 0, cols/side*side
			if c := copiers.of(src); c != nil && k > 0 {
				for ; r+side <= rows; r += side {
					c.turn(at(dst, r), ldd, src.at(r, 0).p, src.ld, side, k)
				}
			}
			if r > 0 && k < cols {
				transpose(at(dst, k*ldd), ldd, src.at(0, k), r, cols-k)
			}
			if r < rows {
				transpose(at(dst, r), ldd, src.at(r, 0), rows-r, cols)
			}
		},
		panels: func(dst *float32, width, stride int, src source, rows, cols int) {
			j := 0
			if c := copiers.of(src); width == narrowPanel && c != nil && c.panels != nil && cols >= width {
				j = cols / width * width
				c.panels(dst, stride, src.p, src.ld, rows, j)
			}
			for ; j < cols; j += width {
				along(at(dst, j/width*stride), width, src.at(0, j), rows, min(width, cols-j))
			}
		},
	}
}
