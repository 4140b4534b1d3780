package nn

// linear is position interpolation (Chen et al. 2023, arXiv 2306.15595): every position is divided by the factor, which is
// every frequency divided by it, so that none lies beyond those of training. Neighbours come closer together, too: without some
// training on scaled positions a model reads worse than it did, on short rows as well. Prefer yarn.
func (s RoPEScaling) linear(f []float64) {
	for i := range f {
		f[i] /= s.Factor
	}
}
