package dedup

import "anneal/internal/isa"

// assembled selects the kernels of NEON.
var assembled = isa.Enables(isa.NEON)

func minHashAssembled(minima, a, b, xs *uint32, n int) { minHashNEON(minima, a, b, xs, n) }

func normaliseAssembled(dst, src *byte, blocks int, masks, high *uint64) {
	normaliseNEON(dst, src, blocks, masks, high)
}
