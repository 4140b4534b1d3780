package isa

import (
	"encoding/binary"
	"os"
	"sync"
)

// hwcap2 returns the CPU's capabilities that the kernel lists in the auxiliary vector of the process, under AT_HWCAP2.
// The vector is pairs of words, a name and a value.
var hwcap2 = sync.OnceValue(func() uint64 {
	const name = 26
	auxv, err := os.ReadFile("/proc/self/auxv")
	for ; err == nil && len(auxv) >= 16; auxv = auxv[16:] {
		if binary.LittleEndian.Uint64(auxv) == name {
			return binary.LittleEndian.Uint64(auxv[8:])
		}
	}
	return 0
})

// hasBF16 reports whether the kernel lists FEAT_BF16.
func hasBF16() bool { return hwcap2()>>14&1 == 1 }

// matrixBytes returns the bytes of a vector of SME, or 0 without it. The default is 32, unless
// /proc/sys/abi/sme_default_vector_length is set to more.
var matrixBytes = sync.OnceValue(func() int {
	if hwcap2()>>23&1 == 0 {
		return 0
	}
	return streamingBytes()
})

// streamingBytes returns the bytes of a vector in streaming mode.
func streamingBytes() int
