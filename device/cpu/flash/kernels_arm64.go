package flash

import "anneal/internal/isa"

// kernels32 returns the float32 primitives of a tier.
func kernels32(tier isa.Tier) kernels[float32] {
	if tier < isa.NEON {
		return portable[float32]()
	}
	return assembly{
		tileM: 4, tileN: 16, pair: 1, group: 1, mul: mulNEON, softmax: softmaxNEON, grad: gradNEON,
		scaleRows: scaleRowsNEON, transpose: transposeNEON, dot: dotNEON, load: loadNEON, loadBF16: loadBF16NEON,
		storeBF16: storeBF16NEON, loadF16: loadF16NEON, storeF16: storeF16NEON,
	}.kernels()
}
