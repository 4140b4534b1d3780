package dataset

import "math"

// Temperature returns weights p_i ∝ n_i^(1/t) of sources of n_i rows or tokens (Devlin et al. 2018 for languages; Arivazhagan et al. 2019,
// arXiv 1907.05019; mT5, 2010.11934, has 1/t = 0.3). t = 1 is natural: every source as often as the others, the default. t → ∞ is
// uniform. Between them small sources come more often than they would; how often says nobody, which is what UniMax is for:
// not for sources so small that they repeat more than about four times.
func Temperature(sizes []float64, t float64) []float64 {
	weights := make([]float64, len(sizes))
	for i, n := range sizes {
		weights[i] = math.Pow(n, 1/t)
	}
	return Normalised(weights)
}
