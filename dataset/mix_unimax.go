package dataset

import (
	"cmp"
	"slices"
)

// UniMax returns weights that spread a budget over sources as evenly as epochs permit (Chung et al. 2023, arXiv
// 2304.09151, Algorithm 1). From the smallest source to the largest, each takes an equal part of the remaining
// budget, but at most epochs times its own size; the rest goes to the larger ones. Sizes and the budget have one
// unit, tokens or rows. The paper uses 1 to 10 epochs, best 1 for its largest models; at 4, repeats begin to be worth
// less than new data (Muennighoff et al. 2023, 2305.16264).
//
// If all sources together hold less than the budget within that many epochs, every weight is at its cap, which equals
// natural sampling, and the run exceeds the cap. A budget of 0 is shared evenly. Not if the sources differ in known
// quality: then the weights should reflect it.
func UniMax(sizes []float64, budget, epochs float64) []float64 {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[a], sizes[b]) })
	takes := make([]float64, len(sizes))
	budget = max(budget, 1e-100) // below every cap
	for i, s := range order {
		takes[s] = min(budget/float64(len(order)-i), epochs*sizes[s])
		budget -= takes[s]
	}
	return Normalised(takes)
}
