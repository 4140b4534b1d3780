package attention

import (
	"unsafe"

	"anneal/device"
)

// Count measures how many keys the queries of a layer see.
type Count struct {
	Pairs   int64   `json:"pairs"`         // pairs of query and key over all heads; a pair in two branches counts twice
	Density float64 `json:"density"`       // share of the causal pairs
	Mean    float64 `json:"keys_mean"`     // mean number of keys per query
	Max     int     `json:"keys_max"`      // largest number of keys of a query
	Cost    float64 `json:"relative_cost"` // computed pairs, if keys come in tiles of 64, relative to full attention
}

// causal returns the number of causal pairs in a row of length tokens, T·(T+1)/2.
func causal(length int) int64 { return int64(length) * int64(length+1) / 2 }

// Measure counts the pairs in rows of length tokens under a layout for rows of at least that length; nil is full
// attention.
func Measure(l *device.Layout, length, heads int) Count {
	if l == nil {
		return Count{
			Pairs: int64(heads) * causal(length), Density: 1, Mean: float64(length+1) / 2, Max: length, Cost: 1,
		}
	}
	var c Count
	counted := map[*device.Graph]graphCount{}
	var computed int64
	for h := range heads {
		g := l.Of(h)
		n, ok := counted[g]
		if !ok {
			n = countGraph(g, length)
			counted[g] = n
		}
		c.Pairs += n.pairs
		c.Max = max(c.Max, n.most)
		computed += n.computed
	}
	var full int64
	for i := 0; i < length; i += tile {
		full += int64(min(tile, length-i)) * int64(i+tile)
	}
	c.Density = float64(c.Pairs) / float64(heads) / float64(causal(length))
	c.Mean = float64(c.Pairs) / float64(heads) / float64(length)
	c.Cost = float64(computed) / float64(heads) / float64(full)
	return c
}

type graphCount struct {
	pairs, computed int64
	most            int
}

func countGraph(g *device.Graph, length int) graphCount {
	var c graphCount
	keys := make([]int, length) // keys per query
	for _, b := range g.Blocks {
		q := shorten(b.Queries, length)
		if q.Count == 0 {
			continue
		}
		loaded := 0 // keys that some query of the block sees
		for _, r := range b.Keys {
			for k := range q.Count {
				from, to := seen(r, q.First+k*q.Step)
				keys[q.First+k*q.Step] += to - from
			}
			from, _ := seen(r, q.First)
			_, to := seen(r, q.First+(q.Count-1)*q.Step)
			loaded += to - from
		}
		c.computed += int64(q.Count) * int64((loaded+tile-1)/tile*tile)
	}
	for _, n := range keys {
		c.pairs += int64(n)
		c.most = max(c.most, n)
	}
	return c
}

// Pairs counts the pairs of query and key, over all heads, that a layout (nil is full attention) shows and whose key is
// in the query's document. Rows have length tokens; start [N] is the position in its row at which the document of each
// token begins.
func Pairs(l *device.Layout, start []int32, length, heads int) (pairs int64) {
	for ; len(start) >= length; start = start[length:] {
		row := start[:length]
		if l == nil {
			for i, from := range row {
				pairs += int64(heads) * int64(i+1-int(from))
			}
			continue
		}
		for i := range l.Graphs {
			users := heads
			if l.Head != nil {
				users = 0
				for _, graph := range l.Head[:heads] {
					if graph == i {
						users++
					}
				}
			}
			pairs += int64(users) * documentPairs(&l.Graphs[i], row)
		}
	}
	return pairs
}

// documentPairs counts the pairs of one head in one row.
func documentPairs(g *device.Graph, start []int32) (pairs int64) {
	for _, b := range g.Blocks {
		q := shorten(b.Queries, len(start))
		if q.Count == 0 {
			continue
		}
		last := q.First + (q.Count-1)*q.Step
		for _, r := range b.Keys {
			end := r.First + (r.Count-1)*r.Step
			if end <= q.First-r.Near && last-r.First < r.Far && int(start[last]) <= r.First {
				pairs += int64(q.Count) * int64(r.Count) // every query of the block sees all of the range
				continue
			}
			for i := q.First; i <= last; i += q.Step {
				from, to := seen(r, i)
				pairs += int64(to - max(from, min(below(r.Strip, int(start[i])), to)))
			}
		}
	}
	return pairs
}

// shorten returns the part of a strip before end.
func shorten(s device.Strip, end int) device.Strip {
	s.Count = max(min(s.Count, (end-s.First+s.Step-1)/s.Step), 0)
	return s
}

// seen returns the keys of a range that query i sees, as indices from … to−1 into the range.
func seen(r device.KeyRange, i int) (from, to int) {
	to = min(below(r.Strip, i-r.Near+1), r.Count)
	return min(below(r.Strip, i-r.Far+1), to), to
}

// below returns how many positions of a strip, extended without end, are before end.
func below(s device.Strip, end int) int {
	if end <= s.First {
		return 0
	}
	return (end - s.First + s.Step - 1) / s.Step
}

// Bytes returns the memory of a layout.
func Bytes(l *device.Layout) int64 {
	if l == nil {
		return 0
	}
	n := int64(unsafe.Sizeof(*l)) + int64(len(l.Head))*int64(unsafe.Sizeof(int(0)))
	counted := map[*device.KeyRange]bool{} // blocks may share their ranges
	for _, g := range l.Graphs {
		n += int64(unsafe.Sizeof(g))
		for _, b := range g.Blocks {
			n += int64(unsafe.Sizeof(b))
			if len(b.Keys) == 0 {
				continue
			}
			if first := &b.Keys[0]; !counted[first] {
				counted[first] = true
				n += int64(len(b.Keys)) * int64(unsafe.Sizeof(*first))
			}
		}
	}
	return n
}
