package compress

import (
	"cmp"
	"math"
	"slices"
)

// Units prunes whole units, heads or feed-forward channels, which a smaller layer can leave out (Li et al. 2017, arXiv
// 1608.08710). A unit is h rows of a matrix of in [units·h, D], and w columns of out [D, units·w]. Units sets the
// share of units with the smallest products of norms (over all their matrices) to 0, and returns the number of these,
// UnitsOf. cols is units·w.
func Units(units int, share float64, out []float32, cols int, in ...[]float32) (pruned int) {
	size := make([]float64, units) // logarithms
	for u := range units {
		for _, w := range in {
			size[u] += math.Log(squares(rowsOf(w, u, units)))
		}
		sum := 0.0
		for part := range columnsOf(out, cols, u, units) {
			sum += squares(part)
		}
		size[u] += math.Log(sum)
	}
	order := make([]int, units)
	for u := range order {
		order[u] = u
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size[a], size[b]) })
	pruned = UnitsOf(units, share)
	for _, u := range order[:pruned] {
		for _, w := range in {
			clear(rowsOf(w, u, units))
		}
		for part := range columnsOf(out, cols, u, units) {
			clear(part)
		}
	}
	return pruned
}

// UnitsOf returns the number of units that a share of them is.
func UnitsOf(units int, share float64) int { return int(math.Round(share * float64(units))) }

// SmallestPercent returns the smallest percentage that is at least one of units, to four decimals.
func SmallestPercent(units int) float64 { return math.Ceil(50e4/float64(units)) / 1e4 }

// rowsOf returns the rows of unit u.
func rowsOf(w []float32, u, units int) []float32 { return w[len(w)/units*u:][:len(w)/units] }

// columnsOf yields the elements of unit u in every row of w.
func columnsOf(w []float32, cols, u, units int) func(yield func([]float32) bool) {
	return func(yield func([]float32) bool) {
		for row := range slices.Chunk(w, cols) {
			if !yield(row[cols/units*u:][:cols/units]) {
				return
			}
		}
	}
}

func squares(w []float32) (sum float64) {
	for _, x := range w {
		sum += float64(x) * float64(x)
	}
	return sum
}
