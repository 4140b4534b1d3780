package flash

import (
	"math"

	"anneal/device"
)

// team is a set of query heads of one key-value head with the same graph, which share the loads of keys and values.
// Its work is cut into steps of up to maxUnits blocks of queries: neighbouring blocks of few heads under full causal
// attention, else one block.
type team struct {
	kv     int
	heads  []int
	graph  *device.Graph // nil for full causal attention
	first  int           // first of the blocks that have queries to compute
	blocks int           // blocks of the row, up to the last of those
	wide   int           // blocks per step
	high   int           // heads per step
	steps  int
}

// maxUnits is the number of blocks of queries, of one head each, that use a tile of keys while it is in cache.
const maxUnits = 4

// unit is a block of queries of one head being computed, or a single query of several heads side by side: a strip of
// step 0.
type unit struct {
	head   int
	beside []int // the heads of a single query; else nil
	device.Strip
}

// work is a worker's current work, apart from its scratch memory.
type work struct {
	units  []unit
	panels []panel // of all units, the same number for each
	ref    int     // the reference position of ALiBi's distances, near the queries
	cutter cutter
	tile   keyTile

	pieces []piece     // pieces for the panels that see the tile, on matrix units
	chores []unitPiece // pieces for the units, backward
	seen   []uint32    // by panel and key

	task  int // in a wave
	later int // the smallest key of later blocks of the same step
}

// findTeams forms the teams of a call.
func (r *runner[T]) findTeams(s *shape) {
	if cap(r.members) < s.Q {
		r.members, r.teams = make([]int, s.Q), make([]team, 0, s.Q)
	}
	r.teams = r.teams[:0]
	members := r.members[:s.Q]
	for h := range members {
		members[h] = h
	}
	for kv := range s.KV {
		for heads := members[kv*s.group : (kv+1)*s.group]; len(heads) > 0; {
			t := team{kv: kv, blocks: (s.length + r.blockQ - 1) / r.blockQ, wide: max(1, maxUnits/s.group)}
			n := len(heads)
			if s.layout != nil {
				t.graph = s.layout.Of(heads[0])
				n = gather(heads, func(h int) bool { return !t.graph.Overlap && s.layout.Of(h) == t.graph })
				t.blocks, t.wide = len(t.graph.Blocks), max(1, maxUnits/n)
			}
			t.heads, heads = heads[:n], heads[n:]
			if t.overlaps() {
				t.wide = max(1, t.blocks)
			}
			parts := (n + maxUnits - 1) / maxUnits
			if s.single() {
				parts = (n + r.tileN - 1) / r.tileN
			}
			t.high = (n + parts - 1) / parts
			t.skip(s, r.blockQ)
			t.steps = (t.blocks - t.first + t.wide - 1) / t.wide * parts
			if t.overlaps() {
				t.steps = 1
			}
			r.teams = append(r.teams, t)
		}
	}
}

// gather moves the heads that belong with the first next to it and returns their number.
func gather(heads []int, belongs func(h int) bool) int {
	n := 1
	for i := 1; i < len(heads); i++ {
		if belongs(heads[i]) {
			heads[n], heads[i] = heads[i], heads[n]
			n++
		}
	}
	return n
}

// skip omits the steps at both ends that have no queries to compute. It does not change where the other steps start
// or which blocks they combine.
func (t *team) skip(s *shape, blockQ int) {
	if t.graph == nil {
		t.first = s.from / blockQ / t.wide * t.wide
		return
	}
	for t.first < t.blocks && last(t.graph.Blocks[t.first].Queries) < s.from {
		t.first++
	}
	t.first = t.first / t.wide * t.wide
	for t.first < t.blocks && t.graph.Blocks[t.blocks-1].Queries.First >= s.length {
		t.blocks--
	}
}

// overlaps reports whether some query is in more than one block of the team's graph.
func (t *team) overlaps() bool { return t.graph != nil && t.graph.Overlap }

// of returns a step's blocks, from … to−1, and heads. Blocks may be after the end of the row.
func (t *team) of(step int) (from, to int, heads []int) {
	parts := (len(t.heads) + t.high - 1) / t.high
	from, heads = t.first+step/parts*t.wide, t.heads[step%parts*t.high:]
	to = min(from+t.wide, t.blocks)
	if t.graph != nil {
		to = min(from+t.wide, len(t.graph.Blocks))
	}
	return from, to, heads[:min(len(heads), t.high)]
}

// least returns the smallest key of blocks from … to−1 of the graph.
func (t *team) least(from, to int) int {
	least := math.MaxInt
	for b := from; b < to && t.graph != nil; b++ {
		for i := range t.graph.Blocks[b].Keys {
			least = min(least, t.graph.Blocks[b].Keys[i].First)
		}
	}
	return least
}

// enlist loads into w the units, panels and keys of those blocks from … to−1 that can be computed together. It
// returns the number of blocks; there are no units if none of their queries exist.
func (r *runner[T]) enlist(w *work, s *shape, row int, t *team, from, to int, heads []int) int {
	if t.graph != nil {
		to = from + w.cutter.blocks(t.graph.Blocks[from:min(to, from+max(1, maxUnits/len(heads)))], r.blockK)
	}
	w.units, w.panels = w.units[:0], w.panels[:0]
	low := s.length
	for b := from; b < to; b++ {
		q := device.Strip{First: b * r.blockQ, Step: 1, Count: min(r.blockQ, s.length-b*r.blockQ)}
		if t.graph != nil {
			q = t.graph.Blocks[b].Queries
			q.Count = min(q.Count, count(q, s.length-1))
		}
		if b == from {
			w.ref = q.First &^ 255
		}
		if q = after(q, s.from); q.Count <= 0 {
			continue
		}
		if s.single() {
			u := unit{heads[0], heads, device.Strip{First: q.First, Count: len(heads)}}
			w.units, w.panels, low = append(w.units, u), append(w.panels, newPanel(s, row, u.Strip)), 0
			continue
		}
		for _, h := range heads {
			w.units = append(w.units, unit{h, nil, q})
			for p := 0; p < s.queries; p += r.tileN {
				var panel panel
				if p < q.Count {
					panel = newPanel(s, row, device.Strip{
						First: q.First + p*q.Step, Step: q.Step, Count: min(r.tileN, q.Count-p),
					})
					low = min(low, panel.low)
				}
				w.panels = append(w.panels, panel)
			}
		}
	}
	if t.graph == nil && len(w.units) > 0 {
		w.cutter.causal(low/r.blockK*r.blockK, last(w.units[len(w.units)-1].Strip))
	}
	return to - from
}

// next loads the next tile that a query of the units sees.
func (w *work) next(size, tileM int) bool {
	for w.cutter.next(&w.tile, size) {
		seen := false
		for i := range w.panels {
			if p := &w.panels[i]; p.Count > 0 && p.look(&w.tile, tileM) {
				seen = true
			}
		}
		if seen {
			return true
		}
	}
	return false
}

// of returns the panels of unit u.
func (w *work) of(u int) []panel {
	n := len(w.panels) / len(w.units)
	return w.panels[u*n : (u+1)*n]
}
