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
// where a(i,p) is a[i·lda+p] for kernels named rows and a[p·lda+i] for those named cols. Strides count elements. With addSums,
// c[i·colStep+j] is added first, then with addTo what to holds.
//
// Meanwhile a kernel asks for memory: for c, so that it lies in the first-level cache when it is added, and for what is needed
// soon: every 4 steps along k, the cache lines at next and at later, which then move by step and stride bytes. These are hints:
// any address is allowed, and the portable kernels ignore them.
type kernel[E tensor.Number] func(to *E, ld int, c, a *E, lda int, b *E, k, add int, next, later uintptr, step, stride int)

// What a kernel adds to its sums.
const (
	addSums = 1
	addTo   = 2
)

// A tile is the set of kernels of a tier: the main ones, mr rows high, and those for the rowStep rows that are left over.
type tile[E tensor.Number] struct {
	sizes
	rows, cols, rows4, cols4 kernel[E]

	strip func(*strip) // of tiers with tiles, instead of the kernels above

	few func(b source) *fewKernels[E] // for products of few rows by b, or nil
}
