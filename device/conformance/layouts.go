package conformance

import (
	"math"

	"anneal/device"

	"pgregory.net/rapid"
)

// DrawLayout returns any layout for rows of at least length tokens and so many heads: blocks of neighbouring or
// strided queries, each with any ranges of keys, so that some queries see nothing and some see a key twice; in some
// graphs blocks overlap.
func DrawLayout(t *rapid.T, length, heads int) *device.Layout {
	l := &device.Layout{Len: length + rapid.SampledFrom([]int{0, 0, 1, 70}).Draw(t, "longer layout")}
	for range rapid.IntRange(1, min(heads, 3)).Draw(t, "graphs") {
		l.Graphs = append(l.Graphs, drawGraph(t, l.Len))
	}
	if len(l.Graphs) > 1 || rapid.Bool().Draw(t, "heads by list") {
		l.Head = rapid.SliceOfN(rapid.IntRange(0, len(l.Graphs)-1), heads, heads).Draw(t, "graph of each head")
	}
	return l
}

func drawGraph(t *rapid.T, length int) device.Graph {
	g := device.Graph{Overlap: rapid.IntRange(0, 3).Draw(t, "overlap") == 0}
	branches := 1
	if g.Overlap {
		branches = rapid.IntRange(1, 3).Draw(t, "branches")
	}
	for b := range branches {
		step := rapid.SampledFrom([]int{1, 1, 2, 3, 9}).Draw(t, "step of queries")
		size := rapid.SampledFrom([]int{64, 64, 1, 5, 32, 40}).Draw(t, "queries per block")
		for rest := range min(step, length) {
			if b > 0 && rapid.Bool().Draw(t, "branch leaves out") {
				continue
			}
			for first := rest; first < length; first += size * step {
				q := device.Strip{First: first, Step: step, Count: min(size, (length-first+step-1)/step)}
				g.Blocks = append(g.Blocks, device.QueryBlock{Queries: q, Keys: drawKeys(t, q, length)})
			}
		}
	}
	return g
}

// drawKeys draws ranges of keys: mostly a window that ends with the queries, and anything.
func drawKeys(t *rapid.T, q device.Strip, length int) []device.KeyRange {
	var list []device.KeyRange
	end := q.First + (q.Count-1)*q.Step + 1
	for range rapid.SampledFrom([]int{0, 1, 1, 2, 5}).Draw(t, "ranges") {
		step := rapid.SampledFrom([]int{1, 2, 7}).Draw(t, "step of keys")
		first := rapid.IntRange(0, length-1).Draw(t, "first key")
		k := device.KeyRange{Strip: device.Strip{First: first, Step: step}, Far: math.MaxInt}
		k.Count = rapid.IntRange(1, (length-first+step-1)/step).Draw(t, "keys")
		if rapid.Bool().Draw(t, "distances") {
			k.Near = rapid.IntRange(0, length).Draw(t, "near")
			k.Far = k.Near + rapid.IntRange(1, length).Draw(t, "far")
		}
		list = append(list, k)
	}
	if window := rapid.IntRange(0, end).Draw(t, "window"); window > 0 {
		first := max(0, q.First+1-window)
		list = append(list, device.KeyRange{
			Strip: device.Strip{First: first, Step: 1, Count: end - first}, Far: window,
		})
	}
	return list
}
