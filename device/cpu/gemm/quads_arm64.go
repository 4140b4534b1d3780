package gemm

import (
	"unsafe"

	"anneal/tensor"
)

// BFMMLA takes quads: two words of two BF16 elements each, adjacent along k. Packed rows keep their order, and in
// packed columns element (i, p) is half-word number 4·(p/4·ldd + i) + p%4. k is padded with zeros to whole quads.

// A quadCopier packs quads of one kind of source: whole blocks, in assembly.
type quadCopier struct {
	rows  copying // 1 row, 8 columns
	turn  copying // 2 rows, 8 columns
	panel copying // 4 rows, 8 columns
}

var (
	copyQuads       = quadCopier{copyRowsF32Quad, transposeF32Quad, panelF32Quad}
	copyNarrowQuads = quadCopier{copyRowsBF16Quad, transposeBF16Quad, panelBF16Quad}
)

func quadCopierOf(s source) *quadCopier {
	if s.dtype == tensor.BF16 {
		return &copyNarrowQuads
	}
	return &copyQuads
}

func quadPacker() packer[float32] {
	return packer[float32]{copyRows: quadRows, transpose: quadTranspose, panels: quadPanels}
}

func quadRows(dst *float32, ldd int, src source, rows, cols int) {
	k := cols &^ 7
	if k > 0 {
		quadCopierOf(src).rows(dst, ldd, src.p, src.ld, rows, k)
	}
	if k == cols {
		return
	}
	for i := range rows {
		to := halfWords(at(dst, i*ldd), roundUp(cols, 4))
		for p := k; p < len(to); p++ {
			to[p] = rounded(src, i, p, p < cols)
		}
	}
}

func quadTranspose(dst *float32, ldd int, src source, rows, cols int) {
	r, k := rows&^1, cols&^7
	if r > 0 && k > 0 {
		quadCopierOf(src).turn(dst, ldd, src.p, src.ld, r, k)
	}
	if k < cols && r > 0 {
		quadEdge(at(dst, k/2*ldd), ldd, r, cols-k, func(i, p int, some bool) tensor.BFloat16 {
			return rounded(src, i, k+p, some)
		})
	}
	if r < rows {
		quadEdge(at(dst, 2*r), ldd, rows-r, cols, func(i, p int, some bool) tensor.BFloat16 {
			return rounded(src, r+i, p, some)
		})
	}
}

func quadPanels(dst *float32, width, stride int, src source, rows, cols int) {
	for j := 0; j < cols; j += width {
		quadPanel(at(dst, j/width*stride), width, src.at(0, j), rows, min(width, cols-j))
	}
}

// quadPanel packs rows along k of cols columns into one panel.
func quadPanel(dst *float32, width int, src source, rows, cols int) {
	k, c := rows&^3, cols&^7
	if k > 0 && c > 0 {
		quadCopierOf(src).panel(dst, width, src.p, src.ld, k, c)
	}
	if k < rows && c > 0 {
		quadEdge(at(dst, k/2*width), width, c, rows-k, func(i, p int, some bool) tensor.BFloat16 {
			return rounded(src, k+p, i, some)
		})
	}
	if c < cols {
		quadEdge(at(dst, 2*c), width, cols-c, rows, func(i, p int, some bool) tensor.BFloat16 {
			return rounded(src, p, c+i, some)
		})
	}
}

// quadEdge packs n columns of k elements, padded with zeros. Element p of column i is element(i, p, p < k).
func quadEdge(dst *float32, ldd, n, k int, element func(i, p int, some bool) tensor.BFloat16) {
	to := halfWords(dst, 4*((k-1)/4*ldd+n))
	for p := range roundUp(k, 4) {
		for i := range n {
			to[4*(p/4*ldd+i)+p%4] = element(i, p, p < k)
		}
	}
}

func halfWords(p *float32, n int) []tensor.BFloat16 {
	return unsafe.Slice((*tensor.BFloat16)(unsafe.Pointer(p)), n)
}

// rounded returns an element of src in BF16, or 0 if there is none.
func rounded(src source, i, p int, some bool) tensor.BFloat16 {
	switch {
	case !some:
		return 0
	case src.dtype == tensor.BF16:
		return *(*tensor.BFloat16)(src.at(i, p).p)
	}
	return tensor.BF16FromFloat32(*(*float32)(src.at(i, p).p))
}
