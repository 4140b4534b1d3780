package gemm

import "anneal/device/cpu/isa"

func f32Tile(isa.Tier) tile[float32]     { return genericTile[float32]() }
func f32Packer(isa.Tier) packer[float32] { return genericPacker[float32]() }
