// Package nearest finds the likely intended name for an unknown one.
package nearest

import (
	"slices"
	"strings"
)

// longest limits the length of a name in letters; no key is that long.
const longest = 256

// To returns the candidate with the smallest edit distance to name, or "" if none is close enough.
func To(name string, candidates []string) string {
	x := []rune(name)
	if len(x) > longest {
		return ""
	}
	best, at := "", max(2, len(name)/4)+1
	var t table
	for _, c := range candidates {
		y := []rune(c)
		if max(len(x)-len(y), len(y)-len(x)) >= at {
			continue // an extra letter is an insertion
		}
		// Names of which more than half differs are not near each other, however short both are.
		if d := t.editDistance(x, y); d < at && 2*d <= max(len(x), len(y)) {
			best, at = c, d
		}
	}
	return best
}

// Beginning returns the candidate that name begins with, or the only one that begins with name: eval for evaluate, and
// temperature for temp. It returns "" if there is none, and if what they share is shorter than three letters.
func Beginning(name string, candidates []string) string {
	longer, n, shorter := "", 0, ""
	for _, c := range candidates {
		switch {
		case len(c) >= 3 && len(c) > len(shorter) && strings.HasPrefix(name, c):
			shorter = c
		case len(name) >= 3 && strings.HasPrefix(c, name):
			longer = c
			n++
		}
	}
	if shorter == "" && n == 1 {
		return longer
	}
	return shorter
}

// table holds three rows of edit distances between prefixes of two names.
type table [3][]int

// editDistance counts insertions, deletions, replacements and swaps of neighbours between x and y.
func (t *table) editDistance(x, y []rune) int {
	for i := range t {
		t[i] = slices.Grow(t[i][:0], len(y)+1)[:len(y)+1]
	}
	before, prev, row := t[0], t[1], t[2] // before is two rows up, for swaps
	for j := range prev {
		prev[j] = j
	}
	for i := range x {
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
		before, prev, row = prev, row, before
	}
	return prev[len(y)]
}
