package tokenizer

import "anneal/internal/isa"

// assembled selects classifyAssembled instead of classify.
var assembled = isa.Enables(isa.AVX2)

func classifyAssembled(b *[blockSize]byte, m *masks) { classifyAVX2(b, m) }

// classifyAVX2 is classify with 32 bytes at a time.
//
//go:noescape
func classifyAVX2(b *[blockSize]byte, m *masks)
