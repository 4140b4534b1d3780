//go:build !amd64

package isa

// describedCache returns a typical cache, because programs on these CPUs cannot query it: 64 KiB in 4 ways, usual on
// Arm servers. The ways of Apple's cores have the same size.
func describedCache(level uint32) (Cache, bool) { return Cache{64 << 10, 4}, level == 1 }
