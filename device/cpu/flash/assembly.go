//go:build amd64 || arm64

package flash

import (
	"math"
	"unsafe"

	"anneal/tensor"
)

//go:generate go run ./gen

// constants is read by the assembly, eight copies of each: the limit below which powers of two are 0, the polynomial
// of 2^x on [−½, ½] from its highest power (minimax, 2e-9 relative), and the integers for exponents and for rounding
// to BF16.
//
//lint:ignore U1000 the assembly names it
var constants = repeat(
	math.Float32bits(-126),
	math.Float32bits(0x1.41d332p-13), math.Float32bits(0x1.5f456ap-10), math.Float32bits(0x1.3b2dbcp-7),
	math.Float32bits(0x1.c6aed4p-5), math.Float32bits(0x1.ebfbdap-3), math.Float32bits(0x1.62e43p-1),
	math.Float32bits(1), 127, 1, 0x7fff, 0x40,
)

func repeat(c ...uint32) (rows [12][8]uint32) {
	for i := range rows {
		for lane := range rows[i] {
			rows[i][lane] = c[i]
		}
	}
	return rows
}

// assembly holds the functions that gen writes for one instruction set.
type assembly struct {
	tileM, tileN, pair, group int

	mul        func(c *float32, ldc int, a *float32, rs, cs int, b *float32, ldb, m, k, add int)
	softmax    func(s *float32, rows, scale int, m, l, alpha *float32)
	grad       func(p, ds, s, dp *float32, ld, rows, scale int, lse, delta *float32)
	dotColumns func(s, q, k *float32, keys, size, block int) // this and the next two may be nil
	sumColumns func(o, s, v *float32, keys, size, block int)
	addColumns func(d, s, x *float32, keys, size, block int)
	scaleRows  func(x *float32, ld, rows, cols int, f *float32)
	transpose  func(dst, src *float32, ld, cols int)
	dot        func(d, a, b *float32, ld, rows, cols int)
	load       func(dst *float32, ld int, src *float32, stride, rows, cols, scale int)
	loadBF16   func(dst *float32, ld int, src *uint16, stride, rows, cols int)
	storeBF16  func(dst *uint16, stride int, src *float32, ld, rows, cols, scale int)
	loadF16    func(dst *float32, ld int, src *uint16, stride, rows, cols int)
	storeF16   func(dst *uint16, stride int, src *float32, ld, rows, cols, scale int)
}

// kernels wraps the assembly, which does not check its arguments, in Go's bounds checks of the last elements it
// accesses.
func (a assembly) kernels() kernels[float32] {
	n := a.tileN
	k := kernels[float32]{
		tileM: a.tileM, tileN: n, pair: a.pair, group: a.group,
		mul: func(c []float32, ldc int, x []float32, rs, cs int, b []float32, ldb, m, k int, add bool) {
			_, _, _ = c[(m-1)*ldc+n-1], x[(m-1)*rs+(k-1)*cs], b[(k-1)*ldb+n-1]
			flag := 0
			if add {
				flag = 1
			}
			a.mul(&c[0], ldc, &x[0], rs, cs, &b[0], ldb, m, k, flag)
		},
		softmax: func(s []float32, rows int, scale float32, m, l, alpha []float32) {
			_, _, _, _ = s[rows*n-1], m[n-1], l[n-1], alpha[n-1]
			a.softmax(&s[0], rows, bits(scale), &m[0], &l[0], &alpha[0])
		},
		grad: func(p, ds, s, dp []float32, ld, rows int, scale float32, lse, delta []float32) {
			last, word := (rows-1)*ld+n-1, (rows-1)*ld+n/a.pair-1
			_, _, _, _, _, _ = p[word], ds[word], s[last], dp[last], lse[n-1], delta[n-1]
			a.grad(&p[0], &ds[0], &s[0], &dp[0], ld, rows, bits(scale), &lse[0], &delta[0])
		},
		scaleRows: func(x []float32, ld, rows, cols int, f []float32) {
			_, _ = x[(rows-1)*ld+cols-1], f[rows-1]
			a.scaleRows(&x[0], ld, rows, cols, &f[0])
		},
		transpose: func(dst, src []float32, ld, cols int) {
			_, _ = dst[cols*n-1], src[(n-1)*ld+cols-1]
			a.transpose(&dst[0], &src[0], ld, cols)
		},
		dot: func(d, x, y []float32, ld, rows, cols int) {
			last := (rows-1)*ld + cols - 1
			_, _, _ = d[rows-1], x[last], y[last]
			a.dot(&d[0], &x[0], &y[0], ld, rows, cols)
		},
		load: func(dst []float32, ld int, src []float32, stride, rows, cols int, scale float32) {
			w := cols &^ 15
			if w > 0 {
				_, _ = dst[(rows-1)*ld+w-1], src[(rows-1)*stride+w-1]
				a.load(&dst[0], ld, &src[0], stride, rows, w, bits(scale))
			}
			if w < cols {
				loadGo(dst[w:], ld, src[w:], stride, rows, cols-w, scale)
			}
		},
		loadBF16: func(dst []float32, ld int, src []tensor.BFloat16, stride, rows, cols int) {
			w := cols &^ 15
			if w > 0 {
				_, _ = dst[(rows-1)*ld+w-1], src[(rows-1)*stride+w-1]
				a.loadBF16(&dst[0], ld, (*uint16)(unsafe.Pointer(&src[0])), stride, rows, w)
			}
			if w < cols {
				loadBF16Go(dst[w:], ld, src[w:], stride, rows, cols-w)
			}
		},
		storeBF16: func(dst []tensor.BFloat16, stride int, src []float32, ld, rows, cols int, scale float32) {
			w := cols &^ 15
			if w > 0 {
				_, _ = dst[(rows-1)*stride+w-1], src[(rows-1)*ld+w-1]
				a.storeBF16((*uint16)(unsafe.Pointer(&dst[0])), stride, &src[0], ld, rows, w, bits(scale))
			}
			if w < cols {
				storeBF16Go(dst[w:], stride, src[w:], ld, rows, cols-w, scale)
			}
		},
		loadF16: func(dst []float32, ld int, src []tensor.Float16, stride, rows, cols int) {
			w := cols &^ 15
			if w > 0 {
				_, _ = dst[(rows-1)*ld+w-1], src[(rows-1)*stride+w-1]
				a.loadF16(&dst[0], ld, (*uint16)(unsafe.Pointer(&src[0])), stride, rows, w)
			}
			if w < cols {
				loadF16Go(dst[w:], ld, src[w:], stride, rows, cols-w)
			}
		},
		storeF16: func(dst []tensor.Float16, stride int, src []float32, ld, rows, cols int, scale float32) {
			w := cols &^ 15
			if w > 0 {
				_, _ = dst[(rows-1)*stride+w-1], src[(rows-1)*ld+w-1]
				a.storeF16((*uint16)(unsafe.Pointer(&dst[0])), stride, &src[0], ld, rows, w, bits(scale))
			}
			if w < cols {
				storeF16Go(dst[w:], stride, src[w:], ld, rows, cols-w, scale)
			}
		},
	}
	if a.pair == 1 {
		a.addColumnKernels(&k)
	}
	return k
}

// addColumnKernels adds the products of columns, in Go if there is no assembly for them.
func (a assembly) addColumnKernels(k *kernels[float32]) {
	n := a.tileN
	k.dotColumns, k.sumColumns = dotColumnsGo[float32](n), sumColumnsGo[float32](n)
	k.addColumns = addColumnsGo[float32](n)
	if a.dotColumns == nil {
		return
	}
	k.dotColumns = func(s, q, x []float32, keys, size, block int) {
		_, _, _ = s[keys*n-1], q[size*n-1], x[(keys-1)*block+size*n-1]
		a.dotColumns(&s[0], &q[0], &x[0], keys, size, block)
	}
	k.sumColumns = func(o, s, v []float32, keys, size, block int) {
		_, _, _ = o[size*n-1], s[keys*n-1], v[(keys-1)*block+size*n-1]
		a.sumColumns(&o[0], &s[0], &v[0], keys, size, block)
	}
	k.addColumns = func(d, s, x []float32, keys, size, block int) {
		_, _, _ = d[(keys-1)*block+size*n-1], s[keys*n-1], x[size*n-1]
		a.addColumns(&d[0], &s[0], &x[0], keys, size, block)
	}
}

func bits(f float32) int { return int(math.Float32bits(f)) }
