package compress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Magnitude sets a share of the weights of w to 0: the ones with the smallest magnitudes (Han et al. 2015, arXiv
// 1506.02626) and, among equal ones, the first.
func Magnitude(w []float32, share float64) {
	if !(share >= 0 && share <= 1) {
		panic(fmt.Sprintf("compress: a share of %v of the weights, want 0 to 1", share))
	}
	order := byMagnitude(w)
	for _, i := range order[:int(math.Round(share*float64(len(w))))] {
		w[i] = 0
	}
}

// Of keeps the keep largest of every block of consecutive weights in a row of w [rows, cols] and sets the others to 0:
// 2 of 4 is the pattern that tensor cores multiply at twice the speed (Mishra et al. 2021, arXiv 2104.08378).
func Of(w []float32, cols, keep, block int) {
	if checkRows(len(w), cols); block < 1 || keep < 0 {
		panic(fmt.Sprintf("compress: %d of every %d weights cannot be kept", keep, block))
	}
	for at := 0; at < len(w); at += cols {
		row := w[at : at+cols]
		for from := 0; from < cols; from += block {
			part := row[from:min(from+block, cols)]
			order := byMagnitude(part)
			for _, i := range order[:max(len(part)-keep, 0)] {
				part[i] = 0
			}
		}
	}
}

// byMagnitude returns the indices of the weights, the smallest magnitude first.
func byMagnitude(w []float32) []int {
	order := make([]int, len(w))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(math.Abs(float64(w[a])), math.Abs(float64(w[b])))
	})
	return order
}
