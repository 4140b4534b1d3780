package nn

import (
	"math"

	"anneal/device"
	"anneal/tensor"
)

// RoPE holds the tables of rotary position embeddings (Su et al. 2021, arXiv 2104.09864): at position p, pair i of a
// head's elements is rotated by the angle p·f, with the frequency f = θ^(−2i/E). The score of a query and a key then
// depends only on their distance. Beyond the training context, slow pairs reach angles that the model has never seen;
// RoPEScaling slows them down. Angles are computed in float64.
//
// Memory: 8 bytes per position and pair, once for all layers. Default of the llama family.
type RoPE struct {
	Cos, Sin tensor.Tensor // [T, E/2], multiplied by the scaling's attention factor
}

// NewRoPE computes the tables for positions [0, positions) and heads of headSize elements. Only the last rotated
// elements of a head turn; the others have angles of 0. The attention factor multiplies both, because scores are over
// whole heads. See Frequencies for the other parameters. NewRoPE allocates the tables in a, an arena of m.
func NewRoPE(m device.Memory, a *tensor.Arena, dtype tensor.DType, positions, headSize, rotated int, theta float64,
	s RoPEScaling, original int) RoPE {
	half := headSize / 2
	r := RoPE{Cos: a.New(dtype, positions, half), Sin: a.New(dtype, positions, half)}
	if !a.Backed() {
		return r
	}
	factor, frequencies := s.AttentionFactor(original), s.Frequencies(rotated, theta, Lengths{original, positions})
	device.Fill(m, &r.Cos, func(cosines *tensor.Tensor) {
		device.Fill(m, &r.Sin, func(sines *tensor.Tensor) {
			for p := range positions {
				still := half - len(frequencies)
				for i := range still {
					cosines.SetFloat64(p*half+i, factor)
					sines.SetFloat64(p*half+i, 0)
				}
				for i, f := range frequencies {
					sin, cos := math.Sincos(float64(p) * f)
					cosines.SetFloat64(p*half+still+i, factor*cos)
					sines.SetFloat64(p*half+still+i, factor*sin)
				}
			}
		})
	})
	return r
}
