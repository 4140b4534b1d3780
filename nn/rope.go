package nn

import (
	"math"

	"anneal/tensor"
)

// RoPE holds the tables of rotary position embeddings (Su et al. 2021, arXiv 2104.09864): the angle of pair i at position
// p is p·θ^(−2i/E). Angles are computed in float64.
type RoPE struct {
	Cos, Sin tensor.Tensor // [T, E/2]
}

// NewRoPE computes the tables for positions [0, positions) and heads of headSize elements, in memory of a.
func NewRoPE(a *tensor.Arena, dtype tensor.DType, positions, headSize int, theta float64) RoPE {
	half := headSize / 2
	r := RoPE{Cos: a.New(dtype, positions, half), Sin: a.New(dtype, positions, half)}
	if !a.Backed() {
		return r
	}
	for i := range half {
		freq := math.Pow(theta, -2*float64(i)/float64(headSize))
		for p := range positions {
			sin, cos := math.Sincos(float64(p) * freq)
			r.Cos.SetFloat64(p*half+i, cos)
			r.Sin.SetFloat64(p*half+i, sin)
		}
	}
	return r
}
