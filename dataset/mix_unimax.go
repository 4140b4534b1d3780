package dataset

import (
	"cmp"
	"slices"
)

// UniMax returns weights that spread a budget over sources as evenly as epochs permit (Chung et al. 2023, arXiv 2304.09151,
// Algorithm 1): from the smallest source to the largest, each takes an equal part of what is left of the budget, but at most epochs times its own size;
// what it cannot take is left to the larger ones. Sizes and the budget have one unit, tokens or rows. The paper has 1 to 10 epochs,
// best 1 for its largest models; 4 is where repeats begin to be worth less than new data (Muennighoff et al. 2023, 2305.16264).
//
// If all sources together have less than the budget within that many epochs, every weight is at its cap, which is natural, and the run
// goes beyond it. A budget of nothing is shared evenly. Not where the sources' quality differs and is known: then weights are to say so.
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
