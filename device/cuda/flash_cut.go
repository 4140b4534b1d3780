//go:build cuda && linux

package cuda

import (
	"slices"

	"anneal/device"
)

// A cutTile is a tile of keys of one unit.
type cutTile struct {
	keys   [tileKeys]int32
	limits [tileKeys]limit
	used   int
}

func newCutTile() (c cutTile) {
	for i := range c.keys {
		c.keys[i] = nowhere
	}
	return c
}

// put adds a key.
func (c *cutTile) put(at int, l limit) {
	c.keys[c.used], c.limits[c.used] = int32(at), l
	c.used++
}

// cut calls f for the tiles of a block of queries. Short ranges share tiles, which hold each key once.
func cut(b *device.QueryBlock, f func(*cutTile)) {
	const few = tileKeys / 2
	small := newCutTile()
	flush := func() {
		if small.used > 0 {
			f(&small)
			small = newCutTile()
		}
	}
	for _, k := range b.Keys {
		l := limit{int32(min(k.Near, nowhere)), int32(min(k.Far, nowhere))}
		if k.Count <= few {
			if small.used+k.Count > tileKeys || small.holds(k.Strip) {
				flush()
			}
			for i := range k.Count {
				small.put(k.First+i*k.Step, l)
			}
			continue
		}
		begin := k.First // tiles of contiguous keys start at multiples of their size
		if k.Step == 1 {
			begin = k.First / tileKeys * tileKeys
		}
		for end := k.First + k.Count*k.Step; begin < end; begin += tileKeys * k.Step {
			c := newCutTile()
			for i := range tileKeys {
				if at := begin + i*k.Step; at >= k.First && at < end {
					c.put(at, l)
				} else {
					c.put(at, limit{})
				}
			}
			f(&c)
		}
	}
	flush()
}

// holds reports whether the tile has a key of a strip.
func (c *cutTile) holds(s device.Strip) bool {
	for i := range s.Count {
		if slices.Contains(c.keys[:c.used], int32(s.First+i*s.Step)) {
			return true
		}
	}
	return false
}

// meet describes how queries and a tile overlap, and reports whether any key is seen.
func (c *cutTile) meet(q *device.Strip) (m meeting, seen bool) {
	m = meeting{low: nowhere, whole: 1}
	last := q.First + (q.Count-1)*q.Step
	for i, at := range c.keys {
		l := c.limits[i]
		if at == nowhere {
			m.whole = 0
			continue
		}
		m.low, m.high = min(m.low, at), max(m.high, at)
		nearest, farthest := max(q.First, int(at)+int(l.near)), min(last, int(at)+int(l.far)-1)
		if q.First != nearest || last != farthest {
			m.whole = 0
		}
		if wait := nearest - q.First; wait%q.Step != 0 {
			nearest += q.Step - wait%q.Step
		}
		seen = seen || nearest <= farthest
	}
	return m, seen
}
