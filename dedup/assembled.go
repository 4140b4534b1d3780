//go:build amd64 || arm64

package dedup

import "unsafe"

// callMost is the largest number of values in one call into assembly, so that no call runs longer than about 50 µs.
const callMost = 8192

func minHash(minima, a, b *[lanes]uint32, xs []uint32) {
	if !assembled {
		minHashGeneric(minima, a, b, xs)
		return
	}
	for len(xs) > 0 {
		n := min(len(xs), callMost)
		minHashAssembled(&minima[0], &a[0], &b[0], &xs[0], n)
		xs = xs[n:]
	}
}

func normalise(dst, src []byte, masks []uint64) (high bool) {
	if !assembled {
		return normaliseGeneric(dst, src, masks)
	}
	for len(masks) > 0 {
		n := min(len(masks), callMost)
		var h uint64
		_, _ = dst[64*n-1], src[64*n-1]
		normaliseAssembled(&dst[0], &src[0], n, &masks[0], &h)
		high = high || h != 0
		dst, src, masks = dst[64*n:], src[64*n:], masks[n:]
	}
	return high
}

// prefetch loads a line of a filter into the cache before it is read.
func prefetch(l *line) { prefetchLine(unsafe.Pointer(l)) }
