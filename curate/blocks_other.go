//go:build !amd64 && !arm64

package curate

func classify(blocks []block, text []byte) { classifyGeneric(blocks, text) }
