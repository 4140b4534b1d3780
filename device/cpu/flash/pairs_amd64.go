package flash

import (
	"unsafe"

	"anneal/internal/isa"
	"anneal/tensor"
)

// zipOrder is read by the assembly: the permutation of 2·32 elements, one row and then the next, to words packed
// down.
//
//lint:ignore U1000 the assembly names it
var zipOrder = func() (order [2 * 32]uint16) {
	for i := range order {
		order[i] = uint16(i/2 + i%2*32)
	}
	return order
}()

// kernelsBF16 returns the primitives of a tier for BF16 storage. With an instruction for pairs they use pairs, with
// probabilities and score gradients rounded to BF16 operands; otherwise they are those of float32.
func kernelsBF16(tier isa.Tier) kernels[float32] {
	if tier < isa.AVX512BF16 {
		return kernels32(tier)
	}
	k := assembly{
		tileM: 8, tileN: 32, pair: 2, group: 2, mul: mulAVX512BF16, softmax: softmaxAVX512BF16,
		grad: gradAVX512BF16, scaleRows: scaleRowsAVX512, transpose: transposeAVX512, dot: dotAVX512BF16,
		load: loadAVX512, storeBF16: storeBF16AVX512,
	}.kernels()
	k.loadBF16 = copyBF16
	k.zip = zip
	return onUnits(k, tier)
}

func zip(dst []float32, ldd int, src []float32, lds, rows, cols int) {
	_, _ = dst[(rows/2-1)*ldd+cols-1], src[(rows-1)*lds+cols/2-1]
	zipAVX512BF16(&dst[0], ldd, &src[0], lds, rows, cols)
}

// copyBF16 is kernels.loadBF16 for pairs, which are stored in the same way in src and dst.
func copyBF16(dst []float32, ld int, src []tensor.BFloat16, stride, rows, cols int) {
	to := unsafe.Slice((*tensor.BFloat16)(unsafe.Pointer(unsafe.SliceData(dst))), 2*len(dst))
	w := cols &^ 31
	if w > 0 {
		_, _ = to[(rows-1)*ld+w-1], src[(rows-1)*stride+w-1]
		copyBF16AVX512BF16((*uint16)(unsafe.Pointer(&to[0])), ld, (*uint16)(unsafe.Pointer(&src[0])), stride, rows, w)
	}
	if w < cols {
		for r := range rows {
			copy(to[r*ld+w:r*ld+cols], src[r*stride+w:])
		}
	}
}
