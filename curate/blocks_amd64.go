package curate

import "anneal/internal/isa"

// useAVX2 chooses classifyAVX2 over classifyGeneric.
var useAVX2 = isa.Enables(isa.AVX2)

// callMost is the most blocks one call into assembly takes, so that none runs longer than about 50 µs.
const callMost = 2048

// classify fills blocks with the masks of the text. It reads two bytes beyond the last block.
func classify(blocks []block, text []byte) {
	if !useAVX2 {
		classifyGeneric(blocks, text)
		return
	}
	for len(blocks) > 0 {
		n := min(len(blocks), callMost)
		_ = text[blockSize*n+lookahead-1]
		classifyAVX2(&blocks[0], &text[0], n)
		blocks, text = blocks[n:], text[blockSize*n:]
	}
}

// classifyAVX2 does what classifyGeneric does, 32 bytes at a time. It knows the order of the fields.
//
//go:noescape
func classifyAVX2(blocks *block, text *byte, n int)
