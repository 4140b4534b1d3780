// Package nearest finds the name that was meant by one that is unknown.
package nearest

// To returns the candidate with the least edit distance to name, or "" if none is near enough to be meant.
func To(name string, candidates []string) string {
	best, at := "", max(2, len(name)/4)+1
	for _, c := range candidates {
		if d := editDistance(name, c); d < at {
			best, at = c, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours between a and b.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 256 {
		return len(x) // no key is so long: nothing is near
	}
	var before []int // two rows up, for swaps
	prev := make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range x {
		row := make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(prev[j]+cost, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(y)]
}
