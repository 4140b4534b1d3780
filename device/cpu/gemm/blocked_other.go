//go:build !amd64

package gemm

import (
	"anneal/internal/isa"
	"anneal/tensor"
)

// Blocked returns that blocked formats are not faster: there are no kernels for them.
func Blocked(isa.Tier, tensor.DType) tensor.DType { return tensor.Invalid }
