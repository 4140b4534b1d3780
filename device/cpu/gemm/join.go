//go:build amd64 || arm64

package gemm

import "anneal/tensor"

// parts are the kernels of a tier whose registers hold less than a tile: of height×width and, for the rest of the rows,
// rowStep×width.
type parts[E tensor.Number] struct {
	height, width            int
	rows, cols, rows4, cols4 kernel[E]
}

// tile joins the kernels to those of a tile.
func (p parts[E]) tile(s sizes, few func(source) *fewKernels[E]) tile[E] {
	join := func(k kernel[E], height, rows int, cols bool) column {
		return columnOf(func(to *E, ld int, c, a *E, lda int, b *E, n, add int, next, later uintptr, step, stride int) {
			down := lda
			if cols {
				down = s.run
			}
			for j := 0; j < colStep; j += p.width { // the outer loop, so that b is read from memory once
				for i := 0; i < rows; i += height {
					k(at(to, i*ld+j), ld, at(c, i*colStep+j), at(a, i*down), lda, at(b, s.run*j), n, add,
						next, later, step, stride)
				}
			}
		})
	}
	return tile[E]{
		sizes: s, few: few,
		rows: join(p.rows, p.height, s.mr, false), rows4: join(p.rows4, rowStep, rowStep, false),
		cols: join(p.cols, p.height, s.mr, true), cols4: join(p.cols4, rowStep, rowStep, true),
	}
}
