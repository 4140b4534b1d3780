package tokenizer

import (
	"os"

	"golang.org/x/sys/cpu"
)

// useAVX2 chooses classifyAVX2 over classify. ANNEAL_CPU=generic asks for code without assembly here too.
var useAVX2 = cpu.X86.HasAVX2 && os.Getenv("ANNEAL_CPU") != "generic"

// classifyAVX2 does what classify does, 32 bytes at a time.
//
//go:noescape
func classifyAVX2(b *[blockSize]byte, m *masks)
