//go:build !amd64

package tokenizer

const useAVX2 = false

func classifyAVX2(*[blockSize]byte, *masks) { panic("tokenizer: AVX2 on another architecture") }
