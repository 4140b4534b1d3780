package curate

import "anneal/internal/isa"

// assembled chooses classifyAssembled over classifyGeneric.
var assembled = isa.Enables(isa.AVX2)

func classifyAssembled(blocks *block, text *byte, n int) { classifyAVX2(blocks, text, n) }

// classifyAVX2 does the same as classifyGeneric, 32 bytes at a time. It depends on the order of the fields.
//
//go:noescape
func classifyAVX2(blocks *block, text *byte, n int)
