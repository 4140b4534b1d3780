package gemm

import (
	"unsafe"

	"anneal/tensor"
)

// genericTile is the portable kernel: rowStep rows at a time, in register tiles of 2×4.
func genericTile[E tensor.Number]() tile[E] {
	rows, cols := columnOf(genericRows[E]), columnOf(genericCols[E])
	return tile[E]{
		sizes: vectorSizes(rowStep, 1), rows: rows, rows4: rows, cols: cols, cols4: cols,
		few: func(source) *fewKernels[E] { return nil },
	}
}

func genericRows[E tensor.Number](to *E, ld int, c, a *E, lda int, b *E, k, add int, _, _ uintptr, _, _ int) {
	genericKernel(to, ld, c, a, lda, 1, b, k, add)
}

func genericCols[E tensor.Number](to *E, ld int, c, a *E, lda int, b *E, k, add int, _, _ uintptr, _, _ int) {
	genericKernel(to, ld, c, a, 1, lda, b, k, add)
}

// genericKernel computes rowStep×colStep elements; a(i,p) is a[i·sr+p·sk].
func genericKernel[E tensor.Number](to *E, ld int, c, a *E, sr, sk int, b *E, k, add int) {
	out := unsafe.Slice(to, (rowStep-1)*ld+colStep)
	sums := unsafe.Slice(c, rowStep*colStep)
	for i := 0; i < rowStep; i += 2 {
		for j := 0; j < colStep; j += 4 {
			var s [2][4]E
			if k > 0 {
				as := unsafe.Slice(a, (i+1)*sr+(k-1)*sk+1)
				bs := unsafe.Slice(b, (k-1)*colStep+j+4)
				s = genericSums(as[i*sr:], as[(i+1)*sr:], sk, bs[j:], colStep, k)
			}
			for r := range s {
				row := out[(i+r)*ld+j:][:4]
				was := sums[(i+r)*colStep+j:][:4]
				for q, v := range s[r] {
					if add&addSums != 0 {
						v += was[q]
					}
					if add&addTo != 0 {
						v += row[q]
					}
					row[q] = v
				}
			}
		}
	}
}

func genericSums[E tensor.Number](a0, a1 []E, sk int, b []E, ldb, k int) [2][4]E {
	var s00, s01, s02, s03, s10, s11, s12, s13 E
	for p := range k {
		x, y := a0[p*sk], a1[p*sk]
		v := b[p*ldb:][:4:4]
		s00 += x * v[0]
		s01 += x * v[1]
		s02 += x * v[2]
		s03 += x * v[3]
		s10 += y * v[0]
		s11 += y * v[1]
		s12 += y * v[2]
		s13 += y * v[3]
	}
	return [2][4]E{{s00, s01, s02, s03}, {s10, s11, s12, s13}}
}
