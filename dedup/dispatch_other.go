//go:build !amd64 && !arm64

package dedup

func minHash(minima, a, b *[lanes]uint32, xs []uint32) { minHashGeneric(minima, a, b, xs) }

func normalise(dst, src []byte, masks []uint64) (high bool) { return normaliseGeneric(dst, src, masks) }

func prefetch(*line) {}
