package model

import "math"

// he is the initialisation of He et al. (2015, arXiv 1502.01852): N(0, 2/fan_in), which keeps the variance of a signal
// through layers that a ReLU halves. Embedding and head, of which one looks rows up and the other makes logits, start from
// N(0, InitStd²). Not for deep models by itself: the residual stream's variance grows with the number of layers, unless
// zero_init is residual. No memory.
func (c Config) he(s site, in int) float64 {
	if s == table {
		return c.InitStd
	}
	return math.Sqrt(2 / float64(in))
}
