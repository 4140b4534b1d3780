package autograd

import (
	"math"
	"slices"

	"anneal/device"
	"anneal/tensor"
)

// A frame is a short row for one call of attention, made of some chunks of a long row: keys of some chunks and queries
// of some, in the order of the long row.
type frame struct {
	keys, queries []int // numbers of chunks, ascending
	chunks        []int // all of them, ascending
	size          int   // S, tokens of a chunk
	start         tensor.Tensor
	host          []int32 // source of start
	layouts       map[*device.Layout]*device.Layout
	shifts        map[shift][]float64
}

// shift identifies a list of shifts.
type shift struct {
	slopes *float64
	query  int
	sign   float64
}

func newFrame(size int, keys, queries []int) *frame {
	chunks := slices.Concat(keys, queries)
	slices.Sort(chunks)
	return &frame{
		keys: keys, queries: queries, chunks: slices.Compact(chunks), size: size,
		layouts: map[*device.Layout]*device.Layout{}, shifts: map[shift][]float64{},
	}
}

// len returns the tokens of the frame.
func (f *frame) len() int { return len(f.chunks) * f.size }

// at returns the position in the frame at which a chunk begins.
func (f *frame) at(chunk int) int { return slices.Index(f.chunks, chunk) * f.size }

// fill sets the starts of documents from those of whole rows of t tokens. A token that is only a key has 0.
func (f *frame) fill(start []int32, t int) {
	for i := range f.host {
		row, at := i/f.len(), i%f.len()
		f.host[i] = 0
		if chunk := f.chunks[at/f.size]; slices.Contains(f.queries, chunk) {
			begin := int(start[row*t+chunk*f.size+at%f.size])
			for _, c := range f.chunks {
				f.host[i] += int32(min(max(begin-c*f.size, 0), f.size))
			}
		}
	}
}

// nearer returns by how much a query chunk and a key chunk are closer to each other in the frame than in the row.
func (f *frame) nearer(query, key int) int {
	return (query*f.size - f.at(query)) - (key*f.size - f.at(key))
}

// shift returns, times sign, what ALiBi adds to the log-sum-exps of a chunk of queries for the distance that the frame
// leaves out; nil for nothing. The frame has keys of one chunk.
func (f *frame) shift(slopes []float64, query int, sign float64) []float64 {
	if slopes == nil || f.nearer(query, f.keys[0]) == 0 {
		return nil
	}
	of := shift{&slopes[0], query, sign}
	list := f.shifts[of]
	for h := len(list); h < len(slopes); h++ {
		list = append(list, -sign*slopes[h]*float64(f.nearer(query, f.keys[0])))
	}
	f.shifts[of] = list
	return list
}

// layout returns the part of a layout of whole rows that lies in the frame, and whether any query sees a key. A layout
// of nil is causal attention.
func (f *frame) layout(l *device.Layout) (part *device.Layout, sees bool) {
	if l == nil && len(f.keys) == len(f.chunks) {
		return nil, true
	}
	part, made := f.layouts[l]
	if !made {
		whole := l
		if l == nil {
			whole = f.causal()
		}
		part = &device.Layout{Len: f.len(), Head: whole.Head, Graphs: make([]device.Graph, len(whole.Graphs))}
		for i := range part.Graphs {
			part.Graphs[i] = f.graph(&whole.Graphs[i])
		}
		f.layouts[l] = part
	}
	return part, slices.ContainsFunc(part.Graphs, func(g device.Graph) bool {
		return slices.ContainsFunc(g.Blocks, func(b device.QueryBlock) bool { return len(b.Keys) > 0 })
	})
}

// causal returns the part of causal attention that lies in the frame.
func (f *frame) causal() *device.Layout {
	var g device.Graph
	for _, chunk := range f.queries {
		end := (chunk + 1) * f.size
		keys := []device.KeyRange{{Strip: device.Strip{Step: 1, Count: end}, Far: math.MaxInt}}
		for q := end - f.size; q < end; q += 64 {
			strip := device.Strip{First: q, Step: 1, Count: min(64, end-q)}
			g.Blocks = append(g.Blocks, device.QueryBlock{Queries: strip, Keys: keys})
		}
	}
	return &device.Layout{Graphs: []device.Graph{g}}
}

// graph returns the part of a graph that lies in the frame. Queries in chunks that only provide keys see nothing.
func (f *frame) graph(g *device.Graph) device.Graph {
	part := device.Graph{Overlap: g.Overlap}
	for _, chunk := range f.chunks {
		if !slices.Contains(f.queries, chunk) {
			for q := f.at(chunk); q < f.at(chunk)+f.size; q += 64 {
				strip := device.Strip{First: q, Step: 1, Count: min(64, f.at(chunk)+f.size-q)}
				part.Blocks = append(part.Blocks, device.QueryBlock{Queries: strip})
			}
			continue
		}
		var before []device.KeyRange
		for i := range g.Blocks {
			if q := f.within(g.Blocks[i].Queries, chunk); q.Count > 0 {
				keys := f.seen(g.Blocks[i].Keys, chunk, q)
				if slices.Equal(keys, before) {
					keys = before // devices work faster on blocks that share their keys
				}
				before = keys
				part.Blocks = append(part.Blocks, device.QueryBlock{Queries: q, Keys: keys})
			}
		}
	}
	return part
}

// within returns the positions of a strip of the row that lie in a chunk, as positions in the frame.
func (f *frame) within(s device.Strip, chunk int) device.Strip {
	from, end := chunk*f.size, (chunk+1)*f.size
	skip := max(0, (from-s.First+s.Step-1)/s.Step)
	s.First, s.Count = s.First+skip*s.Step, s.Count-skip
	s.Count = min(s.Count, max(0, (end-s.First+s.Step-1)/s.Step))
	s.First += f.at(chunk) - from
	return s
}

// seen returns the ranges of keys that queries q of a chunk see in the frame.
func (f *frame) seen(ranges []device.KeyRange, query int, q device.Strip) (list []device.KeyRange) {
	for _, k := range ranges {
		for _, chunk := range f.keys {
			nearer := f.nearer(query, chunk)
			part := device.KeyRange{Strip: f.within(k.Strip, chunk), Near: max(k.Near-nearer, 0), Far: math.MaxInt}
			if k.Far < 1<<32 { // without a limit it is visible from everywhere
				part.Far = k.Far - nearer
			}
			if chunk > query || part.Count <= 0 || q.First-(part.First+(part.Count-1)*part.Step) >= part.Far {
				continue
			}
			if n := len(list); n > 0 && continues(&list[n-1], &part) {
				list[n-1].Count += part.Count
				continue
			}
			list = append(list, part)
		}
	}
	return list
}

// continues reports whether y begins where x ends, with the same limits.
func continues(x, y *device.KeyRange) bool {
	return x.Step == y.Step && x.Near == y.Near && x.Far == y.Far && x.First+x.Count*x.Step == y.First
}
