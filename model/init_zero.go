package model

// zeroes reports whether zero_init covers what. "residual" covers the matrices that write to the residual stream, so
// that every block starts as the identity (Goyal et al. 2017, arXiv 1706.02677, for the last gain of a ResNet's
// block; Zhang et al. 2019, arXiv 1901.09321). "head" covers the output projection, so that the first prediction is
// exactly uniform and the first loss ln V. "both" covers both; "none" is the default. A zero matrix gets its first
// gradient from its input, so it learns from the first step; the weights before it start one step later. Not for a
// tied head, whose embedding would become zero and never learn. No memory.
func (c Config) zeroes(what string) bool { return c.ZeroInit == what || c.ZeroInit == "both" }
