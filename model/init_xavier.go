package model

import "math"

// xavier is the initialisation of Glorot & Bengio (2010): N(0, 2/(fan_in + fan_out)), a compromise between keeping the
// variance of the signal and of its gradient through linear layers. Each of q, k, v, gate and up counts as a matrix of its
// own. Embedding and head start from N(0, InitStd²). Not for deep models by itself, as he. No memory.
func (c Config) xavier(s site, out, in int) float64 {
	if s == table {
		return c.InitStd
	}
	return math.Sqrt(2 / float64(in+out))
}
