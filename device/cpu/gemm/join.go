//go:build amd64 || arm64

package gemm

// halves builds a kernel of colStep columns from one with half as many. run is that of the tile's sizes.
func halves(k kernel[float32], run int) kernel[float32] {
	return func(to *float32, ld int, c, a *float32, lda int, b *float32, n, add int, next, later uintptr,
		step, stride int) {
		k(to, ld, c, a, lda, b, n, add, next, later, step, stride)
		k(at(to, colStep/2), ld, at(c, colStep/2), a, lda, at(b, run*colStep/2), n, add, next, later, step, stride)
	}
}

// quarters builds a kernel of 12×colStep from one of 6 rows and half as many columns. Columns are the outer loop, so
// that b is read from memory once.
func quarters(k kernel[float32], cols bool, run int) kernel[float32] {
	return func(to *float32, ld int, c, a *float32, lda int, b *float32, n, add int, next, later uintptr,
		step, stride int) {
		lower := at(a, 6*lda)
		if cols {
			lower = at(a, 6*run)
		}
		for j := 0; j < colStep; j += colStep / 2 {
			k(at(to, j), ld, at(c, j), a, lda, at(b, run*j), n, add, next, later, step, stride)
			k(at(to, 6*ld+j), ld, at(c, 6*colStep+j), lower, lda, at(b, run*j), n, add, next, later, step, stride)
		}
	}
}
