//go:build !amd64 && !arm64

package flash

import "anneal/internal/isa"

func kernels32(isa.Tier) kernels[float32] { return portable[float32]() }

func kernelsBF16(isa.Tier) kernels[float32] { return portable[float32]() }
