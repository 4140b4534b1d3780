//go:build !amd64 && !arm64

package tokenizer

const assembled = false

func classifyAssembled(*[blockSize]byte, *masks) {
	panic("tokenizer: no assembly for this architecture")
}
