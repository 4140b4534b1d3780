package isa

import (
	"sync"

	"golang.org/x/sys/windows"
)

// hasBF16 reports whether Windows lists FEAT_BF16 among the CPU's features.
var hasBF16 = sync.OnceValue(func() bool {
	const bf16 = 68 // PF_ARM_V86_BF16_INSTRUCTIONS_AVAILABLE
	has, _, _ := windows.NewLazySystemDLL("kernel32.dll").NewProc("IsProcessorFeaturePresent").Call(bf16)
	return has != 0
})

// matrixBytes returns 0: on Windows no query is implemented.
func matrixBytes() int { return 0 }
