package flash

import (
	"math"

	"anneal/tensor"
)

// kernels is the set of primitives of attention. Matrices are row-major with a row stride ("ld"); panels are tileN
// columns wide.
//
// Products read words: an element, or, if pair is 2, two BF16 elements adjacent in the dimension summed over.
// Matrices are packed "across", as words [rows, cols/pair], for products that sum along their rows, and "down", as
// words [rows/pair, cols], for products that sum along their columns. If words are elements, both are the matrix
// itself. If group is 4, the two words of four elements of a column lie next to each other in a matrix packed down:
// [rows/4, cols, 2]. Results are always in T.
type kernels[T tensor.Number] struct {
	tileM, tileN int // rows and columns of the microkernel; tileN is a multiple of tileM
	pair         int // elements in a word, 1 or 2
	group        int // elements of a column next to each other in a matrix packed down: pair, or 4; divides tileM

	// mul computes c [m, tileN] = a [m, k] · b [k, tileN] for k words, or adds to c. Word (i, l) of a is a[i·rs +
	// l·cs]; if group is 4, a is packed across if cs is 1, and otherwise down. m is a multiple of tileM, k of
	// group/pair.
	mul func(c []T, ldc int, a []T, rs, cs int, b []T, ldb, m, k int, add bool)
	// softmax continues an online softmax down the columns of s [rows, tileN]. It overwrites s with 2^(scale·s − m),
	// packed down, for the new running maxima m, rescales the sums l and adds the unrounded powers, and sets alpha =
	// 2^(old m − new m). rows is a multiple of group.
	softmax func(s []T, rows int, scale T, m, l, alpha []T)
	// grad computes p = 2^(scale·s − lse) and ds = p·(dp − delta) from s and dp [rows, tileN], with one lse and delta
	// per column. p and ds are packed across; they may overlap the rows of s and dp, at or before their source
	// columns.
	grad func(p, ds, s, dp []T, ld, rows int, scale T, lse, delta []T)
	// attend does all forward work of panels with a tile of keys, on matrix units (units.go); nil without them. It
	// multiplies the words of queries and keys from number skip on, in steps of 16.
	attend func(t forwardTile[T], pieces []piece, skip, steps, size int, scale T)
	// descend does the same for the backward pass.
	descend func(t backwardTile[T], dk, dv []T, pieces []unitPiece, skip, steps, size int, scale T)
	// lower writes dst [tileN, size], rounded to nearest even, from src [size, tileN], with each column multiplied by
	// a factor. It writes the columns of dst up to a multiple of 32.
	lower func(dst []tensor.BFloat16, stride int, src, f []T, size int)
	// dotColumns, sumColumns and addColumns compute, for every column by itself, s[j] = Σ q[e]·k[j,e], o[e] = Σ
	// s[j]·v[j,e] and d[j,e] += s[j]·x[e], of keys j and size elements e. Vectors of keys lie block elements apart, and
	// each vector has tileN columns. They are nil if words are not elements.
	dotColumns func(s, q, k []T, keys, size, block int)
	sumColumns func(o, s, v []T, keys, size, block int)
	addColumns func(d, s, x []T, keys, size, block int)
	// scaleRows multiplies row i of x [rows, cols] by f[i]. cols is a multiple of tileN.
	scaleRows func(x []T, ld, rows, cols int, f []T)
	// transpose writes words dst [cols, tileN], packed down, = src [tileN, cols]ᵀ, packed across. cols is a multiple of
	// tileN.
	transpose func(dst, src []T, ld, cols int)
	// dot writes d[i] = Σ a[i,j]·b[i,j] over cols columns of words of both, a multiple of tileN.
	dot func(d, a, b []T, ld, rows, cols int)
	// zip packs src [rows, cols], packed across, down into dst, with strides in words. rows is a multiple of group,
	// cols of tileN. It is nil if words are elements.
	zip func(dst []T, ldd int, src []T, lds, rows, cols int)
	// load writes dst [rows, cols] = scale · src, which has its own row stride.
	load func(dst []T, ld int, src []T, stride, rows, cols int, scale T)
	// loadBF16 writes dst [rows, cols], packed across with a stride of ld elements, from src, which has its own row
	// stride.
	loadBF16 func(dst []T, ld int, src []tensor.BFloat16, stride, rows, cols int)
	// storeBF16 writes dst [rows, cols] = scale · src, rounded to nearest even.
	storeBF16 func(dst []tensor.BFloat16, stride int, src []T, ld, rows, cols int, scale T)
	// loadF16 and storeF16 are for FP16, whose words are always elements.
	loadF16  func(dst []T, ld int, src []tensor.Float16, stride, rows, cols int)
	storeF16 func(dst []tensor.Float16, stride int, src []T, ld, rows, cols int, scale T)
}

// portable returns the primitives in pure Go.
func portable[T tensor.Number]() kernels[T] {
	return kernels[T]{
		tileM: 2, tileN: 4, pair: 1, group: 1,
		mul:        mulGo[T],
		softmax:    softmaxGo[T],
		grad:       gradGo[T],
		dotColumns: dotColumnsGo[T](4),
		sumColumns: sumColumnsGo[T](4),
		addColumns: addColumnsGo[T](4),
		scaleRows:  scaleRowsGo[T],
		transpose:  transposeGo[T],
		dot:        dotGo[T],
		load:       loadGo[T],
		loadBF16:   loadBF16Go[T],
		storeBF16:  storeBF16Go[T],
		loadF16:    loadF16Go[T],
		storeF16:   storeF16Go[T],
	}
}

// mulGo keeps a tile of 2 × 4 sums in registers.
func mulGo[T tensor.Number](c []T, ldc int, a []T, rs, cs int, b []T, ldb, m, k int, add bool) {
	for i := 0; i < m; i += 2 {
		var s00, s01, s02, s03, s10, s11, s12, s13 T
		pa, pb := i*rs, 0
		for range k {
			row := b[pb : pb+4 : pb+4]
			x, y := a[pa], a[pa+rs]
			s00 += x * row[0]
			s01 += x * row[1]
			s02 += x * row[2]
			s03 += x * row[3]
			s10 += y * row[0]
			s11 += y * row[1]
			s12 += y * row[2]
			s13 += y * row[3]
			pa += cs
			pb += ldb
		}
		r0 := c[i*ldc : i*ldc+4 : i*ldc+4]
		r1 := c[(i+1)*ldc : (i+1)*ldc+4 : (i+1)*ldc+4]
		if add {
			s00, s01, s02, s03 = s00+r0[0], s01+r0[1], s02+r0[2], s03+r0[3]
			s10, s11, s12, s13 = s10+r1[0], s11+r1[1], s12+r1[2], s13+r1[3]
		}
		r0[0], r0[1], r0[2], r0[3] = s00, s01, s02, s03
		r1[0], r1[1], r1[2], r1[3] = s10, s11, s12, s13
	}
}

func softmaxGo[T tensor.Number](s []T, rows int, scale T, m, l, alpha []T) {
	const n = 4
	for c := range n {
		top := m[c]
		for r := range rows {
			top = max(top, scale*s[r*n+c])
		}
		alpha[c] = exp2(m[c] - top)
		sum := l[c] * alpha[c]
		for r := range rows {
			p := exp2(scale*s[r*n+c] - top)
			s[r*n+c] = p
			sum += p
		}
		m[c], l[c] = top, sum
	}
}

func gradGo[T tensor.Number](p, ds, s, dp []T, ld, rows int, scale T, lse, delta []T) {
	for r := range rows {
		for c := range 4 {
			i := r*ld + c
			p[i] = exp2(scale*s[i] - lse[c])
			ds[i] = p[i] * (dp[i] - delta[c])
		}
	}
}

func exp2[T tensor.Number](x T) T { return T(math.Exp2(float64(x))) }

// dotColumnsGo returns kernels.dotColumns for n columns.
func dotColumnsGo[T tensor.Number](n int) func(s, q, k []T, keys, size, block int) {
	return func(s, q, k []T, keys, size, block int) {
		for j := range keys {
			sums := s[j*n : (j+1)*n]
			clear(sums)
			for e := range size {
				addProductsGo(sums, q[e*n:], k[j*block+e*n:])
			}
		}
	}
}

// sumColumnsGo returns kernels.sumColumns for n columns.
func sumColumnsGo[T tensor.Number](n int) func(o, s, v []T, keys, size, block int) {
	return func(o, s, v []T, keys, size, block int) {
		for e := range size {
			sums := o[e*n : (e+1)*n]
			clear(sums)
			for j := range keys {
				addProductsGo(sums, s[j*n:], v[j*block+e*n:])
			}
		}
	}
}

// addColumnsGo returns kernels.addColumns for n columns.
func addColumnsGo[T tensor.Number](n int) func(d, s, x []T, keys, size, block int) {
	return func(d, s, x []T, keys, size, block int) {
		for j := range keys {
			for e := range size {
				addProductsGo(d[j*block+e*n:][:n], s[j*n:], x[e*n:])
			}
		}
	}
}

func addProductsGo[T tensor.Number](sums, a, b []T) {
	a, b = a[:len(sums)], b[:len(sums)]
	for c := range sums {
		sums[c] += a[c] * b[c]
	}
}

func scaleRowsGo[T tensor.Number](x []T, ld, rows, cols int, f []T) {
	for r := range rows {
		row := x[r*ld : r*ld+cols]
		for c := range row {
			row[c] *= f[r]
		}
	}
}

func transposeGo[T tensor.Number](dst, src []T, ld, cols int) {
	const n = 4
	for c := range cols {
		for r := range n {
			dst[c*n+r] = src[r*ld+c]
		}
	}
}

func dotGo[T tensor.Number](d, a, b []T, ld, rows, cols int) {
	for r := range rows {
		var sum T
		for c := range cols {
			sum += a[r*ld+c] * b[r*ld+c]
		}
		d[r] = sum
	}
}

func loadGo[T tensor.Number](dst []T, ld int, src []T, stride, rows, cols int, scale T) {
	for r := range rows {
		to := dst[r*ld : r*ld+cols]
		for c, x := range src[r*stride : r*stride+cols] {
			to[c] = x * scale
		}
	}
}

func loadBF16Go[T tensor.Number](dst []T, ld int, src []tensor.BFloat16, stride, rows, cols int) {
	for r := range rows {
		to := dst[r*ld : r*ld+cols]
		for c, x := range src[r*stride : r*stride+cols] {
			to[c] = T(x.Float32())
		}
	}
}

func storeBF16Go[T tensor.Number](dst []tensor.BFloat16, stride int, src []T, ld, rows, cols int, scale T) {
	for r := range rows {
		to := dst[r*stride : r*stride+cols]
		for c, x := range src[r*ld : r*ld+cols] {
			to[c] = tensor.BF16FromFloat32(float32(x * scale))
		}
	}
}

func loadF16Go[T tensor.Number](dst []T, ld int, src []tensor.Float16, stride, rows, cols int) {
	for r := range rows {
		to := dst[r*ld : r*ld+cols]
		for c, x := range src[r*stride : r*stride+cols] {
			to[c] = T(x.Float32())
		}
	}
}

func storeF16Go[T tensor.Number](dst []tensor.Float16, stride int, src []T, ld, rows, cols int, scale T) {
	for r := range rows {
		to := dst[r*stride : r*stride+cols]
		for c, x := range src[r*ld : r*ld+cols] {
			to[c] = tensor.F16FromFloat32(float32(x * scale))
		}
	}
}
