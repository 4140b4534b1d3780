package gemm

import (
	"math/bits"
	"unsafe"

	"anneal/tensor"
)

// rowStep and colStep are the granularity of the kernels on every tier: rows in fours and columns in 32s.
const (
	rowStep = 4
	colStep = 32
)

// A visit is the work of one call of a kernel: tiles below each other, of tile.mr or rowStep rows and colStep columns,
// by one panel of b:
//
//	to(i,j) = Σ_p a(i,p) · b[p·colStep+j]
//
// In tiers whose registers hold fewer columns, b is panels of so many columns, beside bytes apart.
//
// where a(i,p) is word p of row i, rows lda bytes apart, for kernels named rows, and word i of row p for kernels named
// cols. toBelow, cBelow and aBelow are the bytes to the next tile in each matrix. With addSums, c(i,j) is added first,
// whose rows have colStep elements; with addTo, then the old value of to.
//
// For each tile kernels also prefetch: c, so that it is in the first-level cache when it is added, and, every 4 steps
// along k, the cache lines at next and at later, which then advance by step and stride bytes. Any address is allowed,
// and the portable kernels ignore them. The assembly reads the fields at their offsets.
type visit struct {
	to          unsafe.Pointer
	ld, toBelow int
	c           unsafe.Pointer
	cBelow      int
	a           unsafe.Pointer
	lda, aBelow int
	b           unsafe.Pointer
	k           int
	add         int
	tiles       int    // at least one
	done        [4]int // the assembly's: bytes below to, c, a and in ahead of the current tile
	ahead       [mostTiles]ahead

	beside int    // bytes from the first columns of a panel of b to the next ones, in tiers that divide it
	part   [5]int // the assembly's: the distances from a tile to the current part of it
}

// An ahead describes the memory that a kernel prefetches while it computes one tile.
type ahead struct {
	next   uintptr
	step   int
	later  uintptr
	stride int
}

// mostTiles is the largest number of tiles of a visit, which the portable kernels have.
const mostTiles = rowsTN / rowStep

// The terms that a kernel adds to its sums.
const (
	addSums = 1
	addTo   = 2
)

// A column computes a visit.
type column func(v *visit)

// A kernel computes one tile of a visit. Strides count elements.
type kernel[E tensor.Number] func(to *E, ld int, c, a *E, lda int, b *E, k, add int, next, later uintptr,
	step, stride int)

// columnOf returns the column of a kernel. It shifts, since a division takes as long as a hundred multiplications.
func columnOf[E tensor.Number](k kernel[E]) column {
	shift := bits.TrailingZeros(uint(unsafe.Sizeof(*new(E))))
	return func(v *visit) {
		for t := range v.tiles {
			f := &v.ahead[t]
			to, c, a := unsafe.Add(v.to, t*v.toBelow), unsafe.Add(v.c, t*v.cBelow), unsafe.Add(v.a, t*v.aBelow)
			k((*E)(to), v.ld>>shift, (*E)(c), (*E)(a), v.lda>>shift, (*E)(v.b), v.k, v.add,
				f.next, f.later, f.step, f.stride)
		}
	}
}

// A tile is the set of kernels of a tier: the main ones with mr rows, and those with rowStep rows for the rest.
type tile[E tensor.Number] struct {
	sizes
	rows, cols, rows4, cols4 column

	strip func(*strip) // in tiers with tiles, instead of the kernels above
	outer outerKernel  // in tiers with outer products, instead of them

	few func(b source) *fewKernels[E] // for products of few rows by b, or nil where it has none
}
