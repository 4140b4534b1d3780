//go:build amd64 || arm64

package curate

//go:generate go run ./gen

// callMost is the largest number of blocks in one call into assembly, so that no call runs longer than about 50 µs.
const callMost = 2048

// classify fills blocks with the masks of the text. It reads two bytes beyond the last block.
func classify(blocks []block, text []byte) {
	if !assembled {
		classifyGeneric(blocks, text)
		return
	}
	for len(blocks) > 0 {
		n := min(len(blocks), callMost)
		_ = text[blockSize*n+lookahead-1]
		classifyAssembled(&blocks[0], &text[0], n)
		blocks, text = blocks[n:], text[blockSize*n:]
	}
}
