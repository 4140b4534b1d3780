//go:build !amd64 && !arm64

package gemm

import (
	"anneal/internal/isa"
	"anneal/tensor"
)

func f32Tile(isa.Tier) tile[float32]     { return genericTile[float32]() }
func f64Tile(isa.Tier) tile[float64]     { return genericTile[float64]() }
func f32Packer(isa.Tier) packer[float32] { return genericPacker[float32]() }
func f32Store(isa.Tier) store[float32]   { return put[float32] }

func bf16Tile(isa.Tier) (tile[float32], packer[float32], bool) {
	return tile[float32]{}, packer[float32]{}, false
}

func peakLoop(isa.Tier, tensor.DType) (loop func(n int), flops int) {
	return genericPeak, genericPeakFLOPs
}
