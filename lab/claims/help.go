package claims

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// near reports whether a is within a share of b.
func near(a, b, share float64) bool { return math.Abs(a-b) <= share*math.Abs(b) }

// truth returns 1 for true, 0 for false.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// sameOr describes whether things differ, from 1 or 0.
func sameOr(differ float64) string {
	if differ == 1 {
		return "different"
	}
	return "the same"
}

// gain describes by how many percent something is better or worse.
func gain(better float64) string {
	if better < 0 {
		return fmt.Sprintf("%.1f %% worse", -better)
	}
	return fmt.Sprintf("%.1f %% better", better)
}

// sorted orders figures by name.
func sorted(list []Figure) []Figure {
	slices.SortFunc(list, func(a, b Figure) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
