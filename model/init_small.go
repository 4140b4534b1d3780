package model

import "math"

// smallInit is the initialisation of GPT-NeoX (Black et al. 2022): N(0, 2/(5D)) of Nguyen & Salazar (2019) for all
// except the matrices that write to the residual stream, which start from N(0, (2/(L·√D))²) (Wang & Komatsuzaki
// 2021). It scales with width and depth and has no other setting. Under muP the tables keep the deviation of the base
// width. Not for a few layers with a tied head, whose logits start with a standard deviation of √(2/5). No memory.
func (c Config) smallInit(s site) float64 {
	switch s {
	case inner:
		return math.Sqrt(2 / (5 * float64(c.Dim)))
	case output:
		return 2 / (float64(c.Layers) * math.Sqrt(float64(c.Dim)))
	}
	return math.Sqrt(2 / (5 * float64(c.baseDim())))
}
