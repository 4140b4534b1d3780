package nn

// linear is position interpolation (Chen et al. 2023, arXiv 2306.15595): it divides every position, and so every
// frequency, by the factor, so that no position lies beyond those of training. Neighbours also move closer together:
// without some training on scaled positions the model gets worse, on short rows as well. Prefer yarn.
func (s RoPEScaling) linear(f []float64) {
	for i := range f {
		f[i] /= s.Factor
	}
}
