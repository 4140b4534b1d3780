package flash

import "anneal/device"

// team is query heads of one key-value head that go by one graph, and so share the loads of keys and values. Its work is cut into
// steps of up to maxUnits blocks of queries: neighbouring blocks of few heads under full causal attention, else one block.
type team struct {
	kv     int
	heads  []int
	graph  *device.Graph // nil for full causal attention
	first  int           // of the blocks that have queries to compute
	blocks int           // of the row, up to the last of those
	wide   int           // blocks per step
	high   int           // heads per step
	steps  int
}

// maxUnits is how many blocks of queries, of one head each, work on a tile of keys while it is at hand.
const maxUnits = 4

// unit is a block of queries of one head at work, or the one query that there is of several heads, side by side: a strip of
// step 0.
type unit struct {
	head   int
	beside []int // the heads of one query; else nil
	device.Strip
}

// work is what a worker has in hand beside its scratch memory.
type work struct {
	units  []unit
	panels []panel // of all units, as many for each
	ref    int     // the position that ALiBi's distances are counted from, near the queries
	cutter cutter
	tile   keyTile
}

// muster finds the teams of a call.
func (r *runner[T]) muster(s *shape) {
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
				t.blocks, t.wide = len(t.graph.Blocks), 1
			}
			t.heads, heads = heads[:n], heads[n:]
			parts := (n + maxUnits - 1) / maxUnits
			if s.single() {
				parts = (n + r.tileN - 1) / r.tileN
			}
			t.high = (n + parts - 1) / parts
			t.skip(s, r.blockQ)
			t.steps = (t.blocks - t.first + t.wide - 1) / t.wide * parts
			if t.graph != nil && t.graph.Overlap {
				t.steps = 1
			}
			r.teams = append(r.teams, t)
		}
	}
}

// gather moves the heads that belong with the first to it and returns how many there are.
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

// skip leaves out the blocks at both ends that have no queries to compute.
func (t *team) skip(s *shape, blockQ int) {
	if t.graph == nil {
		t.first = s.from / blockQ / t.wide * t.wide
		return
	}
	for t.first < t.blocks && last(t.graph.Blocks[t.first].Queries) < s.from {
		t.first++
	}
	for t.first < t.blocks && t.graph.Blocks[t.blocks-1].Queries.First >= s.length {
		t.blocks--
	}
}

// enlist brings the units, the panels and the keys of one step of a team into w; for a graph with overlaps a step is one block here. It
// returns false if none of the queries exist.
func (r *runner[T]) enlist(w *work, s *shape, row int, t *team, step int) bool {
	parts := (len(t.heads) + t.high - 1) / t.high
	block := t.first + step/parts*t.wide
	heads := t.heads[step%parts*t.high:]
	heads = heads[:min(len(heads), t.high)]
	w.units, w.panels = w.units[:0], w.panels[:0]
	low := s.length
	for b := block; b < min(block+t.wide, t.blocks); b++ {
		q := device.Strip{First: b * r.blockQ, Step: 1, Count: min(r.blockQ, s.length-b*r.blockQ)}
		if t.graph != nil {
			q = t.graph.Blocks[b].Queries
			q.Count = min(q.Count, count(q, s.length-1))
		}
		if b == block {
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
					panel = newPanel(s, row, device.Strip{First: q.First + p*q.Step, Step: q.Step, Count: min(r.tileN, q.Count-p)})
					low = min(low, panel.low)
				}
				w.panels = append(w.panels, panel)
			}
		}
	}
	if len(w.units) == 0 {
		return false
	}
	if t.graph != nil {
		w.cutter.block(&t.graph.Blocks[block])
	} else {
		w.cutter.causal(low/r.blockK*r.blockK, last(w.units[len(w.units)-1].Strip))
	}
	return true
}

// next brings the next tile into w that a query of its units sees.
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
