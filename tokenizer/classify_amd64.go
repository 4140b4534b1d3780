package tokenizer

import (
	"os"

	"golang.org/x/sys/cpu"
)

// useAVX2 selects classifyAVX2 instead of classify. ANNEAL_CPU=generic disables it.
var useAVX2 = cpu.X86.HasAVX2 && os.Getenv("ANNEAL_CPU") != "generic"

// classifyAVX2 is classify with 32 bytes at a time.
//
//go:noescape
func classifyAVX2(b *[blockSize]byte, m *masks)
