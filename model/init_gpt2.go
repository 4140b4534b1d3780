package model

import (
	"math"

	"anneal/nn"
)

// gpt2 is the initialisation of GPT-2 (Radford et al. 2019), the default: N(0, σ²) with σ = InitStd, and σ/√(2L) for
// the 2L matrices that write to the residual stream, so that the variance of the stream does not grow with depth. σ =
// 0.02 suits widths around 1000; wider models need less, narrower ones more (small, xavier and he scale with the
// width, and so does gpt2 under muP, where hidden matrices have σ/√m). No memory.
func (c Config) gpt2(s site, g nn.Growth) float64 {
	switch s {
	case inner:
		return c.InitStd / math.Sqrt(g.In)
	case output:
		return c.InitStd / math.Sqrt(2*float64(c.Layers)/g.Depth) / math.Sqrt(g.In) / g.Depth
	}
	return c.InitStd
}
