package flash

import (
	"unsafe"

	"anneal/internal/isa"
	"anneal/tensor"
)

// kernelsBF16 returns the primitives of a tier for BF16 storage. With BFMMLA they use pairs in groups of four elements,
// with probabilities and score gradients rounded to BF16 operands; otherwise they are those of float32. BFMMLA flushes
// subnormal numbers, and rounds sums to odd.
func kernelsBF16(tier isa.Tier) kernels[float32] {
	if tier < isa.BF16 {
		return kernels32(tier)
	}
	k := assembly{
		tileM: 4, tileN: 16, pair: 2, group: 4, softmax: softmaxBFMMLA, grad: gradBFMMLA, scaleRows: scaleRowsNEON,
		transpose: transposeBFMMLA, dot: dotBFMMLA, load: loadNEON, storeBF16: storeBF16NEON,
	}.kernels()
	k.mul = mulQuads
	k.loadBF16 = copyBF16
	k.zip = zipQuads
	return k
}

func mulQuads(c []float32, ldc int, a []float32, rs, cs int, b []float32, ldb, m, k int, add bool) {
	const n = 16
	_, _ = c[(m-1)*ldc+n-1], b[(k-2)*ldb+2*n-1]
	flag := 0
	if add {
		flag = 1
	}
	if cs == 1 {
		_ = a[(m-1)*rs+k-1]
		mulAcrossBFMMLA(&c[0], ldc, &a[0], rs, &b[0], ldb, m, k, flag)
		return
	}
	_ = a[(k-2)*cs+2*m-1]
	mulDownBFMMLA(&c[0], ldc, &a[0], cs, &b[0], ldb, m, k, flag)
}

func zipQuads(dst []float32, ldd int, src []float32, lds, rows, cols int) {
	_, _ = dst[(rows/2-2)*ldd+2*cols-1], src[(rows-1)*lds+cols/2-1]
	zipBFMMLA(&dst[0], ldd, &src[0], lds, rows, cols)
}

// copyBF16 is kernels.loadBF16 for pairs, which are stored in the same way in src and dst.
func copyBF16(dst []float32, ld int, src []tensor.BFloat16, stride, rows, cols int) {
	to := unsafe.Slice((*tensor.BFloat16)(unsafe.Pointer(unsafe.SliceData(dst))), 2*len(dst))
	for r := range rows {
		copy(to[r*ld:r*ld+cols], src[r*stride:r*stride+cols])
	}
}
