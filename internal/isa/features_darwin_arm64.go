package isa

import (
	"sync"

	"golang.org/x/sys/unix"
)

// hasBF16 reports whether macOS lists FEAT_BF16 among the CPU's features: from M2 on.
var hasBF16 = sync.OnceValue(func() bool { return sysctl("hw.optional.arm.FEAT_BF16") == 1 })

// matrixBytes returns the bytes of a vector of SME, or 0 without it: 64 from M4 on.
var matrixBytes = sync.OnceValue(func() int {
	if sysctl("hw.optional.arm.FEAT_SME") != 1 {
		return 0
	}
	return sysctl("hw.optional.arm.sme_max_svl_b")
})

// sysctl returns a value that macOS reports about the CPU, 0 if the name is unknown.
func sysctl(name string) int {
	v, err := unix.SysctlUint32(name)
	if err != nil {
		return 0
	}
	return int(v)
}
