package dedup

import "anneal/internal/isa"

// The kernels in use.
var (
	assembled = isa.Enables(isa.AVX2)
	useAVX512 = isa.Enables(isa.AVX512)
)

func minHashAssembled(minima, a, b, xs *uint32, n int) {
	if useAVX512 {
		minHashAVX512(minima, a, b, xs, n)
	} else {
		minHashAVX2(minima, a, b, xs, n)
	}
}

func normaliseAssembled(dst, src *byte, blocks int, masks, high *uint64) {
	normaliseAVX2(dst, src, blocks, masks, high)
}
