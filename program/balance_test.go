package program

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// No other way to cut the layers has a cheaper most expensive part.
func TestBalanceIsTheBestOfAllCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		costs := rapid.SliceOfN(rapid.IntRange(0, 20), 1, 9).Draw(t, "costs")
		parts := rapid.IntRange(1, len(costs)).Draw(t, "parts")
		least := 1 << 30
		var try func(from, parts, most int)
		try = func(from, parts, most int) {
			if parts == 0 {
				if from == len(costs) {
					least = min(least, most)
				}
				return
			}
			sum := 0
			for to := from; to < len(costs); to++ {
				sum += costs[to]
				try(to+1, parts-1, max(most, sum))
			}
		}
		try(0, parts, 0)
		var floats []float64
		for _, c := range costs {
			floats = append(floats, float64(c))
		}
		got, at, most := Balance(floats, parts), 0, 0
		for _, n := range got {
			sum := 0
			for _, c := range costs[at : at+n] {
				sum += c
			}
			at, most = at+n, max(most, sum)
		}
		if len(got) != parts || at != len(costs) || slices.Min(got) < 1 || most != least {
			t.Fatalf("%v in %d parts: %v, the most expensive costs %d, want %d", costs, parts, got, most, least)
		}
	})
}

// Equal layers are dealt evenly, the first parts have one more; an expensive head gets fewer layers beside it.
func TestBalanceOfLikelyModels(t *testing.T) {
	even := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	for _, c := range []struct {
		costs []float64
		want  []int
	}{
		{even, []int{3, 3, 2, 2}},
		{[]float64{1, 1, 1, 1, 1, 1, 1, 2}, []int{3, 3, 2}},
		{[]float64{5, 1, 1, 1, 1, 1}, []int{1, 3, 2}},
	} {
		if got := Balance(c.costs, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%v is cut into %v, want %v", c.costs, got, c.want)
		}
	}
}
