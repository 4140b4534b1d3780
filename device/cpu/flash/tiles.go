package flash

import (
	"math"

	"anneal/device"
)

// run is keys that stand in a tile one after the other, the first in row at.
type run struct {
	device.KeyRange
	at int
}

// keyTile is some keys, of one or more ranges, that are computed with together.
type keyTile struct {
	runs []run
	keys int
}

// cutter cuts the ranges of keys of a block of queries into tiles. Which keys share a tile depends on the layout alone: not on
// the length of the row, nor on documents.
type cutter struct {
	ranges []device.KeyRange
	used   int // keys of ranges[0] that earlier tiles have
	last   int // the block's last query: what lies behind it nobody sees
	one    [1]device.KeyRange
}

// causal makes the cutter go over keys from … last.
func (c *cutter) causal(from, last int) {
	c.one[0] = device.KeyRange{Strip: device.Strip{First: from, Step: 1, Count: last + 1 - from}, Far: math.MaxInt}
	c.ranges, c.used, c.last = c.one[:], 0, last
}

// block makes the cutter go over the keys of a block of queries.
func (c *cutter) block(b *device.QueryBlock) {
	c.ranges, c.used, c.last = b.Keys, 0, last(b.Queries)
}

// next fills a tile with up to size keys, in the order of the ranges, none twice. It returns false at the end.
func (c *cutter) next(t *keyTile, size int) bool {
	t.runs, t.keys = t.runs[:0], 0
	for len(c.ranges) > 0 && t.keys < size {
		k := c.ranges[0]
		k.Count = min(k.Count, count(k.Strip, c.last-k.Near)) - c.used
		if k.Count <= 0 {
			c.ranges, c.used = c.ranges[1:], 0
			continue
		}
		k.First += c.used * k.Step
		k.Count = min(k.Count, size-t.keys)
		if t.holds(k.Strip) {
			break
		}
		t.runs = append(t.runs, run{k, t.keys})
		t.keys += k.Count
		c.used += k.Count
	}
	return t.keys > 0
}

// holds reports whether the tile may have a key of a strip.
func (t *keyTile) holds(s device.Strip) bool {
	for i := range t.runs {
		o := &t.runs[i].Strip
		if s.First <= last(*o) && o.First <= last(s) && (s.Step != o.Step || (s.First-o.First)%s.Step == 0) {
			return true
		}
	}
	return false
}

// least returns the smallest key of the tiles to come.
func (c *cutter) least() int {
	least := math.MaxInt
	for i, k := range c.ranges {
		first := k.First
		if i == 0 {
			first += c.used * k.Step
		}
		if first <= min(last(k.Strip), c.last-k.Near) {
			least = min(least, first)
		}
	}
	return least
}

// last returns the last position of a strip.
func last(s device.Strip) int { return s.First + (s.Count-1)*s.Step }

// count returns how many positions of a strip that goes on for ever are at most p.
func count(s device.Strip, p int) int {
	if p < s.First {
		return 0
	}
	switch s.Step {
	case 0: // all at one position
		return s.Count
	case 1:
		return p - s.First + 1
	}
	return (p-s.First)/s.Step + 1
}

// after returns the part of a strip from position p on.
func after(s device.Strip, p int) device.Strip {
	n := count(s, p-1)
	s.First += n * s.Step
	s.Count -= n
	return s
}

// greatest returns the tile's largest key.
func (t *keyTile) greatest() int {
	top := 0
	for i := range t.runs {
		top = max(top, last(t.runs[i].Strip))
	}
	return top
}

// contiguous returns the tile's first key if its keys are neighbours that begin and end where sums of whole tiles of the
// microkernel do, in a row of length tokens; else false.
func (t *keyTile) contiguous(tileM, length int) (int, bool) {
	s := &t.runs[0]
	end := s.First + s.Count
	return s.First, len(t.runs) == 1 && s.Step == 1 && s.First%tileM == 0 && (end == length || s.Count%tileM == 0 && end <= length)
}

// panel is queries that stand side by side, and what they see of the tile at hand.
type panel struct {
	device.Strip
	last        int // the last of them
	low, common int // the first keys of their documents: the earliest and the latest
	starts      []int32

	lo, hi int  // outside these rows of the tile they see nothing
	masked bool // nor all that is between
}

// newPanel returns the panel of queries q of a row.
func newPanel(s *shape, row int, q device.Strip) panel {
	p := panel{Strip: q, last: last(q)}
	if s.start == nil {
		return p
	}
	p.starts = s.start[row*s.length : (row+1)*s.length]
	p.low = p.last + 1
	for i := q.First; i <= p.last; i += q.Step {
		p.low, p.common = min(p.low, int(p.starts[i])), max(p.common, int(p.starts[i]))
	}
	p.low = max(p.low, 0)
	return p
}

// look sets what the panel sees of a tile and returns whether that is anything. The rows begin at a multiple of tileM.
func (p *panel) look(t *keyTile, tileM int) bool {
	p.lo, p.hi = t.keys, 0
	for i := range t.runs {
		s := &t.runs[i]
		from, to := count(s.Strip, max(p.First-s.Far, p.low-1)), min(count(s.Strip, p.last-s.Near), s.Count)
		if from < to {
			p.lo, p.hi = min(p.lo, s.at+from), max(p.hi, s.at+to)
		}
	}
	p.lo = p.lo / tileM * tileM
	p.masked = false
	for i := range t.runs {
		s := &t.runs[i]
		from, to := max(p.lo-s.at, 0), min(p.hi-s.at, s.Count)
		if from < to && (s.First+from*s.Step < max(p.last-s.Far+1, p.common) || s.First+(to-1)*s.Step > p.First-s.Near) {
			p.masked = true
		}
	}
	return p.lo < p.hi
}
