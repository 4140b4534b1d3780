package tokenizer

import "anneal/internal/isa"

// assembled selects classifyAssembled instead of classify.
var assembled = isa.Enables(isa.NEON)

func classifyAssembled(b *[blockSize]byte, m *masks) { classifyNEON(b, m) }
