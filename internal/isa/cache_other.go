//go:build !amd64

package isa

// describedCache knows no cache: programs of other CPUs cannot ask for it, but 64 KiB in 4 ways is usual on Arm
// servers, and Apple's cores have as many bytes in a way.
func describedCache(level uint32) (Cache, bool) { return Cache{64 << 10, 4}, level == 1 }
