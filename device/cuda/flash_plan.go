//go:build cuda && linux

package cuda

import (
	"math"
	"slices"
	"unsafe"

	"anneal/device"
	"anneal/device/cuda/driver"
)

// tileKeys is the number of keys that attention processes at a time.
const tileKeys = 64

// A plan is a layout in the form that kernels/flash.cuh reads. Its units are blocks of queries. The ranges of keys of
// each unit are cut into tiles of up to 64 keys: contiguous keys at multiples of 64, other keys in order. Units with
// the same keys share a tile; limits hide the keys that a unit does not see. Each tile lists its units, and the
// gradients of its keys are sums over these. The cut depends only on the layout, not on the length of a row.
type plan struct {
	graphs  []graph // one for all heads, or one per head
	units   []unit
	ofUnits []meeting
	ofTiles []meeting
	lists   []list
	tiles   [][tileKeys]int32
	limits  [][tileKeys]limit
	slots   []int32

	planUnits, planTiles int  // of all heads in graphs
	mostUnits, mostTiles int  // of a head
	overlap              bool // a query is in several units of a graph
	shared               bool // a key is in several tiles of a graph

	memory driver.Pointer
	at     [8]int // offsets of its parts
}

// The records of flash.cuh.
type (
	graph struct {
		unit, units, tile, tiles, unitsBefore, tilesBefore, queries, keys int32
	}
	unit struct {
		first, step, count, begin, end int32
		_                              [3]int32
	}
	meeting struct {
		other, limits, low, high, whole int32
		_                               [3]int32
	}
	limit struct{ near, far int32 }
	list  struct{ begin, end int32 }
)

// nowhere is the position of a slot without a key.
const nowhere = math.MaxInt32

// newPlan compiles a layout.
func newPlan(l *device.Layout) *plan {
	p := &plan{}
	limits := map[[tileKeys]limit]int32{}
	made := make([]graph, len(l.Graphs))
	for i := range l.Graphs {
		made[i] = p.add(&l.Graphs[i], l.Len, limits)
	}
	heads := l.Head
	if heads == nil {
		heads = []int{0}
	}
	for _, h := range heads {
		g := made[h]
		g.unitsBefore, g.tilesBefore = int32(p.planUnits), int32(p.planTiles)
		p.graphs = append(p.graphs, g)
		p.planUnits += int(g.units)
		p.planTiles += int(g.tiles)
		p.mostUnits, p.mostTiles = max(p.mostUnits, int(g.units)), max(p.mostTiles, int(g.tiles))
	}
	return p
}

// add compiles a graph for rows of length tokens.
func (p *plan) add(g *device.Graph, length int, limits map[[tileKeys]limit]int32) graph {
	r := graph{unit: int32(len(p.units)), tile: int32(len(p.tiles))}
	known := map[[tileKeys]int32]int32{}
	tile := func(keys *[tileKeys]int32) int32 {
		n, ok := known[*keys]
		if !ok {
			n = int32(len(p.tiles))
			known[*keys] = n
			p.tiles = append(p.tiles, *keys)
		}
		return n
	}
	for i := range g.Blocks {
		q := &g.Blocks[i].Queries
		u := unit{first: int32(q.First), step: int32(q.Step), count: int32(q.Count), begin: int32(len(p.ofUnits))}
		cut(&g.Blocks[i], func(c *cutTile) {
			n, ok := limits[c.limits]
			if !ok {
				n = int32(len(p.limits))
				limits[c.limits] = n
				p.limits = append(p.limits, c.limits)
			}
			if m, seen := c.meet(q); seen {
				m.other, m.limits = tile(&c.keys), n
				p.ofUnits = append(p.ofUnits, m)
			}
		})
		u.end = int32(len(p.ofUnits))
		p.units = append(p.units, u)
	}
	r.units = int32(len(p.units)) - r.unit
	p.cover(r, length, tile)
	r.tiles = int32(len(p.tiles)) - r.tile
	p.reverse(r)
	r.queries = p.list(length, &p.overlap, func(place func(at, slot int)) {
		for n, u := range p.units[r.unit:] {
			for i := range int(u.count) {
				place(int(u.first)+i*int(u.step), n*tileKeys+i)
			}
		}
	})
	r.keys = p.list(length, &p.shared, func(place func(at, slot int)) {
		for n := range p.tiles[r.tile:] {
			for i, at := range p.tiles[int(r.tile)+n] {
				place(int(at), n*tileKeys+i)
			}
		}
	})
	return r
}

// cover adds tiles for keys that no query sees, whose gradients are zero.
func (p *plan) cover(g graph, length int, tile func(*[tileKeys]int32) int32) {
	covered := make([]bool, length)
	for i := range p.tiles[g.tile:] {
		for _, at := range p.tiles[int(g.tile)+i] {
			if int(at) < length {
				covered[at] = true
			}
		}
	}
	rest := newCutTile()
	flush := func() {
		if rest.used > 0 {
			tile(&rest.keys)
			rest = newCutTile()
		}
	}
	for at := range length {
		if !covered[at] {
			rest.put(at, limit{})
		}
		if rest.used == tileKeys {
			flush()
		}
	}
	flush()
}

// reverse lists the units of each tile of a graph, in order.
func (p *plan) reverse(g graph) {
	lists := make([][]meeting, g.tiles)
	for u := g.unit; u < g.unit+g.units; u++ {
		for _, m := range p.ofUnits[p.units[u].begin:p.units[u].end] {
			tile := m.other - g.tile
			m.other = u
			lists[tile] = append(lists[tile], m)
		}
	}
	for _, l := range lists {
		begin := int32(len(p.ofTiles))
		p.ofTiles = append(p.ofTiles, l...)
		p.lists = append(p.lists, list{begin, int32(len(p.ofTiles))})
	}
}

// list writes for each position the slots that the function each places there, and returns the offset of the list. It
// sets many if any position has several slots.
func (p *plan) list(length int, many *bool, each func(place func(at, slot int))) int32 {
	slots := make([][]int32, length)
	each(func(at, slot int) {
		if at < length {
			slots[at] = append(slots[at], int32(slot))
		}
	})
	begin := int32(len(p.slots))
	at := begin + int32(length) + 1
	for _, s := range slots {
		p.slots = append(p.slots, at)
		at += int32(len(s))
		*many = *many || len(s) > 1
	}
	p.slots = append(p.slots, at)
	p.slots = append(p.slots, slices.Concat(slots...)...)
	return begin
}

// planOf returns the compiled layout, on the card. Layouts are compiled once and kept until the device is closed.
func (d *Device) planOf(l *device.Layout) *plan {
	if l == nil {
		return nil
	}
	if p := d.attention.plans[l]; p != nil {
		return p
	}
	p := newPlan(l)
	var data []byte
	for i, part := range [8][]byte{
		bytesOf(p.graphs), bytesOf(p.units), bytesOf(p.ofUnits), bytesOf(p.ofTiles), bytesOf(p.lists), bytesOf(p.tiles),
		bytesOf(p.limits), bytesOf(p.slots),
	} {
		p.at[i] = len(data)
		data = append(data, part...)
		data = append(data, make([]byte, -len(data)&15)...)
	}
	p.memory = d.keep("a pattern of attention", data)
	if d.attention.plans == nil {
		d.attention.plans = map[*device.Layout]*plan{}
	}
	d.attention.plans[l] = p
	return p
}

// bytesOf returns the bytes of records.
func bytesOf[R any](x []R) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(*new(R))))
}
