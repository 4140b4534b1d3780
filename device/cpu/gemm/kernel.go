package gemm

import "anneal/tensor"

// rowStep and colStep are the granularity of the kernels on every tier: rows in fours and columns in 32s.
const (
	rowStep = 4
	colStep = 32
)

// A kernel computes one tile of tile.mr or rowStep rows and colStep columns:
//
//	c[i·ldc+j] = Σ_p a(i,p) · b[p·ldb+j], added to c if add is not 0
//
// where a(i,p) is a[i·lda+p] for kernels named rows and a[p·lda+i] for those named cols. Strides count elements.
//
// Meanwhile a kernel asks for memory: for its own sums, so that they lie in the first-level cache when it adds to them, and for what
// is needed soon: every 4 steps along k, the cache lines at next and at later, which then move by step and stride bytes. These are
// hints: any address is allowed, and the portable kernels ignore them.
type kernel[E tensor.Number] func(c *E, ldc int, a *E, lda int, b *E, ldb int, k, add int, next, later uintptr, step, stride int)

// A tile is the set of kernels of a tier: the main ones, mr rows high, and those for the rowStep rows that are left over.
type tile[E tensor.Number] struct {
	mr                       int // rows of the main kernels
	rows, cols, rows4, cols4 kernel[E]
}
