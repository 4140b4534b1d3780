package isa

import (
	"encoding/binary"
	"os"
	"sync"
)

// hasBF16 reports whether the kernel lists FEAT_BF16 among the CPU's capabilities, in the auxiliary vector of the
// process: pairs of words, of which AT_HWCAP2 has bit 14 for it.
var hasBF16 = sync.OnceValue(func() bool {
	const hwcap2, bf16 = 26, 1 << 14
	auxv, err := os.ReadFile("/proc/self/auxv")
	for ; err == nil && len(auxv) >= 16; auxv = auxv[16:] {
		if binary.LittleEndian.Uint64(auxv) == hwcap2 {
			return binary.LittleEndian.Uint64(auxv[8:])&bf16 != 0
		}
	}
	return false
})
