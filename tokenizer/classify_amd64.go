package tokenizer

import "anneal/internal/isa"

// useAVX2 selects classifyAVX2 instead of classify.
var useAVX2 = isa.Enables(isa.AVX2)

// classifyAVX2 is classify with 32 bytes at a time.
//
//go:noescape
func classifyAVX2(b *[blockSize]byte, m *masks)
