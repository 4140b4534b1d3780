package isa

import (
	"sync"

	"golang.org/x/sys/unix"
)

// hasBF16 reports whether macOS lists FEAT_BF16 among the CPU's features: from M2 on.
var hasBF16 = sync.OnceValue(func() bool {
	has, err := unix.SysctlUint32("hw.optional.arm.FEAT_BF16")
	return err == nil && has == 1
})
