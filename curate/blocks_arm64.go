package curate

import "anneal/internal/isa"

// assembled chooses classifyAssembled over classifyGeneric.
var assembled = isa.Enables(isa.NEON)

func classifyAssembled(blocks *block, text *byte, n int) { classifyNEON(blocks, text, n) }
