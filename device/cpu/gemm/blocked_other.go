//go:build !amd64

package gemm

import (
	"anneal/internal/isa"
	"anneal/tensor"
)

// Blocked returns tensor.Invalid: without kernels for them, blocked formats are not faster.
func Blocked(isa.Tier, tensor.DType) tensor.DType { return tensor.Invalid }
