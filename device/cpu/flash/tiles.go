package flash

import (
	"math"
	"slices"

	"anneal/device"
)

// run is a series of consecutive keys in a tile, starting at row at.
type run struct {
	device.KeyRange
	at int
}

// keyTile is a set of keys, from one or more ranges, that are processed together.
type keyTile struct {
	runs []run
	keys int
}

// cutter cuts the ranges of keys of query blocks into tiles: contiguous keys at multiples of the tile size, other
// keys in order. The keys of a tile depend only on the layout, not on the length of the row or on documents.
type cutter struct {
	ranges []device.KeyRange
	tail   device.KeyRange // after the ranges
	used   int             // keys of ranges[0], or else of tail, that earlier tiles hold
	last   int             // the last query of the blocks, after which nothing is seen
}

// causal sets the keys to from … last.
func (c *cutter) causal(from, last int) {
	*c = cutter{
		tail: device.KeyRange{Strip: device.Strip{First: from, Step: 1, Count: last + 1 - from}, Far: math.MaxInt},
		last: last,
	}
}

// blocks sets the keys to those of the first blocks that have the same keys, except for keys that are hidden from one
// of them. It returns the number of these blocks.
func (c *cutter) blocks(list []device.QueryBlock, size int) int {
	b := &list[0]
	*c = cutter{last: last(b.Queries)}
	n := len(b.Keys) - 1
	if n < 0 {
		return 1
	}
	c.ranges, c.tail = b.Keys[:n], b.Keys[n]
	below, above := open(b)
	many := 1
	for ; many < len(list); many++ {
		other := &list[many]
		if other.Queries.First <= c.last || len(other.Keys) != n+1 ||
			&b.Keys[0] != &other.Keys[0] && !slices.Equal(c.ranges, other.Keys[:n]) {
			break
		}
		belowO, aboveO := open(other)
		if !join(&c.tail, &other.Keys[n], below, above, belowO, aboveO) {
			break
		}
		below, above, c.last = below && belowO, above && aboveO, last(other.Queries)
	}
	if s := &c.tail; s.Step == 1 && below {
		s.First, s.Count = s.First/size*size, s.Count+s.First%size
	}
	return many
}

// join extends x to hold the keys of y as well, if each may start earlier and end later as needed.
func join(x, y *device.KeyRange, belowX, aboveX, belowY, aboveY bool) bool {
	if x.Step != y.Step || x.Near != y.Near || x.Far != y.Far || (x.First-y.First)%x.Step != 0 {
		return false
	}
	endX, endY := x.First+x.Count*x.Step, y.First+y.Count*y.Step
	if x.First > y.First && !belowX || y.First > x.First && !belowY || endX < endY && !aboveX ||
		endY < endX && !aboveY {
		return false
	}
	x.First = min(x.First, y.First)
	x.Count = (max(endX, endY) - x.First) / x.Step
	return true
}

// open reports whether the last range of a block may start earlier, because distance hides the earlier keys, or end
// later.
func open(b *device.QueryBlock) (below, above bool) {
	k := &b.Keys[len(b.Keys)-1]
	return b.Queries.First-k.First+k.Step >= k.Far, k.First+k.Count*k.Step > last(b.Queries)-k.Near
}

// next fills a tile with up to size keys, each once. It returns false at the end.
func (c *cutter) next(t *keyTile, size int) bool {
	t.runs, t.keys = t.runs[:0], 0
	for t.keys < size {
		k := c.tail
		if len(c.ranges) > 0 {
			k = c.ranges[0]
		}
		if k.Count > 0 {
			k.Count = min(k.Count, count(k.Strip, c.last-k.Near)) - c.used
		}
		if k.Count <= 0 {
			if len(c.ranges) == 0 {
				break
			}
			c.ranges, c.used = c.ranges[1:], 0
			continue
		}
		k.First += c.used * k.Step
		room := size - t.keys
		if k.Step == 1 {
			k.Count = min(k.Count, size-k.First%size)
		} else {
			k.Count = min(k.Count, room)
		}
		if k.Count > room || t.holds(k.Strip) {
			break
		}
		t.runs = append(t.runs, run{k, t.keys})
		t.keys += k.Count
		c.used += k.Count
	}
	return t.keys > 0
}

// holds reports whether the tile may hold a key of a strip.
func (t *keyTile) holds(s device.Strip) bool {
	for i := range t.runs {
		o := &t.runs[i].Strip
		if s.First <= last(*o) && o.First <= last(s) && (s.Step != o.Step || (s.First-o.First)%s.Step == 0) {
			return true
		}
	}
	return false
}

// last returns the last position of a strip.
func last(s device.Strip) int { return s.First + (s.Count-1)*s.Step }

// count returns the number of positions up to p of a strip extended without end.
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

// contiguous returns the tile's first key if its keys are contiguous and begin and end at microkernel boundaries, in
// a row of length tokens; else false.
func (t *keyTile) contiguous(tileM, length int) (int, bool) {
	s := &t.runs[0]
	end := s.First + s.Count
	return s.First, len(t.runs) == 1 && s.Step == 1 && s.First%tileM == 0 &&
		(end == length || s.Count%tileM == 0 && end <= length)
}

// panel is a set of queries side by side, and the part of the current tile that they see.
type panel struct {
	device.Strip
	last        int // last query
	low, common int // the earliest and the latest first key of their documents
	starts      []int32

	lo, hi int  // rows of the tile that any query sees
	masked bool // some of these are hidden from some query
	whole  bool // computes whole tiles, not stairs along the edge of the visible part
	begun  bool // its sums are not empty, on matrix units
}

// newPanel returns the panel of queries q of a row.
func newPanel(s *shape, row int, q device.Strip) panel {
	p := panel{Strip: q, last: last(q), whole: s.whole}
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

// look finds the part of a tile that the panel sees and reports whether there is any. The rows start at a multiple of
// tileM.
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
		if from < to && (s.First+from*s.Step < max(p.last-s.Far+1, p.common) ||
			s.First+(to-1)*s.Step > p.First-s.Near) {
			p.masked = true
		}
	}
	if p.whole && p.lo < p.hi {
		p.lo, p.hi, p.masked = 0, t.keys, true
	}
	return p.lo < p.hi
}

// stair is the granularity, in queries or keys, for cutting a tile along the edge of the visible area: a multiple of
// tileM.
const stair = 16

// rows returns the rows of a run that some of n queries of a panel, from at on, see; the first is a multiple of group.
func (p *panel) rows(k *run, at, n, group int) (from, to int) {
	first, last := p.First+at*p.Step, min(p.First+(at+n-1)*p.Step, p.last)
	from, to = count(k.Strip, first-k.Far), count(k.Strip, last-k.Near)
	return max(from/group*group, p.lo), min(to, p.hi)
}

// columns returns the queries of a panel, up to width, that see some of a run's keys in rows at … at+stair−1; the
// first is a multiple of group.
func (p *panel) columns(k *run, at, group, width int) (from, to int) {
	first, last := k.First+at*k.Step, k.First+(at+stair-1)*k.Step
	from, to = count(p.Strip, first+k.Near-1), width
	if k.Far <= p.last-last {
		to = min(to, roundUp(count(p.Strip, last+k.Far-1), group))
	}
	return from / group * group, to
}
