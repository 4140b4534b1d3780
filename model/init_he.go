package model

import "math"

// he is the initialisation of He et al. (2015, arXiv 1502.01852): N(0, 2/fan_in), which preserves the variance of a
// signal through layers followed by ReLU, which halves it. Embedding and head start from N(0, InitStd²). Not for deep
// models without zero_init = residual: the variance of the residual stream grows with the number of layers. No
// memory.
func (c Config) he(s site, in int) float64 {
	if s == table {
		return c.InitStd
	}
	return math.Sqrt(2 / float64(in))
}
