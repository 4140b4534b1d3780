package model

import "math"

// xavier is the initialisation of Glorot & Bengio (2010): N(0, 2/(fan_in + fan_out)), a compromise between preserving
// the variance of the signal and of its gradient through linear layers. q, k, v, gate and up count as separate
// matrices. Embedding and head start from N(0, InitStd²). Like he, not for deep models on its own. No memory.
func (c Config) xavier(s site, out, in int) float64 {
	if s == table {
		return c.InitStd
	}
	return math.Sqrt(2 / float64(in+out))
}
