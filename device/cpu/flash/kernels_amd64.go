package flash

import "anneal/internal/isa"

// kernels32 returns the float32 primitives of a tier.
func kernels32(tier isa.Tier) kernels[float32] {
	switch {
	case tier >= isa.AVX512:
		return assembly{
			tileM: 8, tileN: 32, pair: 1, group: 1, mul: mulAVX512, softmax: softmaxAVX512, grad: gradAVX512,
			dotColumns: dotColumnsAVX512, sumColumns: sumColumnsAVX512, addColumns: addColumnsAVX512,
			scaleRows: scaleRowsAVX512, transpose: transposeAVX512, dot: dotAVX512, load: loadAVX512,
			loadBF16: loadBF16AVX512, storeBF16: storeBF16AVX512, loadF16: loadF16AVX512, storeF16: storeF16AVX512,
		}.kernels()
	case tier == isa.AVX2:
		return assembly{
			tileM: 4, tileN: 16, pair: 1, group: 1, mul: mulAVX2, softmax: softmaxAVX2, grad: gradAVX2,
			dotColumns: dotColumnsAVX2, sumColumns: sumColumnsAVX2, addColumns: addColumnsAVX2,
			scaleRows: scaleRowsAVX2, transpose: transposeAVX2, dot: dotAVX2, load: loadAVX2, loadBF16: loadBF16AVX2,
			storeBF16: storeBF16AVX2, loadF16: loadF16AVX2, storeF16: storeF16AVX2,
		}.kernels()
	default:
		return portable[float32]()
	}
}
