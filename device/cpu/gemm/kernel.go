package gemm

import "anneal/tensor"

// rowStep and colStep are the granularity of the kernels on every tier: rows in fours and columns in 32s.
const (
	rowStep = 4
	colStep = 32
)

// A kernel computes one tile of tile.mr or rowStep rows and colStep columns:
//
//	to[i·ld+j] = Σ_p a(i,p) · b[p·colStep+j]
//
// where a(i,p) is a[i·lda+p] for kernels named rows and a[p·lda+i] for kernels named cols. Strides count elements.
// With addSums, c[i·colStep+j] is added first; with addTo, then the old value of to.
//
// Kernels also prefetch: c, so that it is in the first-level cache when it is added, and, every 4 steps along k, the
// cache lines at next and at later, which then advance by step and stride bytes. Any address is allowed, and the
// portable kernels ignore them.
type kernel[E tensor.Number] func(to *E, ld int, c, a *E, lda int, b *E, k, add int, next, later uintptr,
	step, stride int)

// The terms that a kernel adds to its sums.
const (
	addSums = 1
	addTo   = 2
)

// A tile is the set of kernels of a tier: the main ones with mr rows, and those with rowStep rows for the rest.
type tile[E tensor.Number] struct {
	sizes
	rows, cols, rows4, cols4 kernel[E]

	strip func(*strip) // in tiers with tiles, instead of the kernels above
	outer outerKernel  // in tiers with outer products, instead of them

	few func(b source) *fewKernels[E] // for products of few rows by b; may be nil
}
