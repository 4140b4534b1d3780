package nn

// dynamic is NTK scaling whose stretch follows the length of the rows (emozilla 2023; §3.3 of arXiv 2309.00071). At
// L positions, of which L0 are the original context, the base θ becomes θ·α^(E/(E−2)) with
//
//	α = s·max(L, L0)/L0 − (s − 1)
//
// so that nothing changes up to L0. Here L is the context of the model, which is known before the first step: rows of
// every length turn alike, and keys in a cache stay valid while a text grows. Not for long training, where a base
// that is simply larger does the same.
func (s RoPEScaling) dynamic(f []float64, headSize int, l Lengths) {
	RoPEScaling{Kind: "ntk", Factor: s.Stretch(l)}.ntk(f, headSize)
}

// Stretch returns α of dynamic.
func (s RoPEScaling) Stretch(l Lengths) float64 {
	return s.Factor*float64(max(l.Positions, l.Original))/float64(l.Original) - (s.Factor - 1)
}
