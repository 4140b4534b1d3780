package dataset

import (
	"math"
	"slices"
)

// Temperature returns weights p_i ∝ n_i^(1/t) of sources of n_i rows or tokens (Devlin et al. 2018 for languages;
// Arivazhagan et al. 2019, arXiv 1907.05019; mT5, 2010.11934, has 1/t = 0.3). t = 1 is natural sampling, the default:
// every source is read equally often. t → ∞ is uniform. In between, small sources are read more often, with no limit
// on their epochs, which UniMax has: not for sources so small that they repeat more than about four times.
//
// Powers are rounded to 32 bits before they are normalised, because the last bits of math.Pow differ between
// processors, and a run must be resumable on all of them.
func Temperature(sizes []float64, t float64) []float64 {
	weights, most := make([]float64, len(sizes)), slices.Max(sizes)
	for i, n := range sizes {
		part, exp := math.Frexp(math.Pow(n/most, 1/t)) // at most 1 for any t
		weights[i] = math.Ldexp(math.Round(part*(1<<32)), exp-32)
	}
	return Normalised(weights)
}
