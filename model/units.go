package model

import (
	"anneal/autograd"
	"anneal/nn"
	"anneal/tensor"
)

// A unit is a run of blocks between two points at which other work may happen: gathering its weights, freeing them,
// reducing their gradients, or sending the stream. Forward runs units in order, backward in reverse
// (autograd.Tape.BackTo).
type unit struct {
	blocks     []*block
	recomputed bool // backward reruns all of it
}

// wrap sets what happens around each part of the model, from the inside out. It is the only place that knows the
// order:
//
//	attention   recomputed by itself
//	branch      dropped by stochastic depth, or not (branch.Forward)
//	block       its temporary values end with it
//	unit        recomputed as a whole
func (m *Decoder) wrap() {
	l := m.Config.Recompute
	for _, b := range m.blocks {
		b.branches[0].body = b.attention
		if i := b.attention.layer; i >= l.Whole && i < l.Whole+l.Attention {
			b.branches[0].body = again{b.attention}
		}
	}
	m.units, m.chunks = m.units[:0], m.chunks[:0]
	blocks := m.blocks
	for _, chunk := range m.part.chunks(m.Config.Layers) {
		first, n := len(m.units), chunk.To-chunk.From
		m.wrapChunk(blocks[:n], min(max(l.Whole-chunk.From, 0), n))
		m.chunks, blocks = append(m.chunks, [2]int{first, len(m.units)}), blocks[n:]
	}
}

// wrapChunk makes units of consecutive blocks, of which backward recomputes the first whole ones.
func (m *Decoder) wrapChunk(blocks []*block, whole int) {
	for from := 0; from < whole; from += m.Config.Recompute.Segment {
		m.units = append(m.units, unit{blocks[from:min(from+m.Config.Recompute.Segment, whole)], true})
	}
	for i := whole; i < len(blocks); i++ {
		m.units = append(m.units, unit{blocks[i : i+1], false})
	}
}

// again is a part of a block that backward runs again instead of keeping its results.
type again struct{ part autograd.Segment }

// Forward runs the part on activations h.
func (a again) Forward(t *autograd.Tape, h *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	return t.RecomputePart(a.part, h, seq)
}

// Forward runs the blocks on the stream x [N, D].
func (u *unit) Forward(t *autograd.Tape, x *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	for _, b := range u.blocks {
		x = t.Block(b, x, seq) // [N, D]
	}
	return x
}

// Units returns the number of units.
func (m *Decoder) Units() int { return len(m.units) }

// Chunks returns the number of runs of layers that this rank has.
func (m *Decoder) Chunks() int { return len(m.chunks) }

// Chunk returns the units [from, to) of one run of layers.
func (m *Decoder) Chunk(i int) (from, to int) { return m.chunks[i][0], m.chunks[i][1] }

// Unit runs unit i on the stream x [N, D]: [N, D].
func (m *Decoder) Unit(t *autograd.Tape, i int, x *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	u := &m.units[i]
	if u.recomputed {
		return t.Recompute(u, x, seq, m.inputFormat(x))
	}
	return u.Forward(t, x, seq)
}

// inputFormat is the format in which a unit that is recomputed keeps its input x.
func (m *Decoder) inputFormat(x *autograd.Var) tensor.DType {
	if m.Config.Recompute.Narrow {
		return tensor.BF16
	}
	return x.Value.DType()
}

// UnitParams returns the parameters of Embed, of every unit, and of Finish with HeadLoss, in the order of Params. A
// tied head belongs to Embed, whose backward pass completes its gradient. In a part of a model, the list of a unit
// that the rank does not have is empty.
func (m *Decoder) UnitParams() [][]*nn.Param {
	list, from := make([][]*nn.Param, 0, len(m.units)+2), 0
	take := func(n int) {
		list = append(list, m.params[from:from+n:from+n])
		from += n
	}
	count := func(u unit) (n int) {
		for _, b := range u.blocks {
			n += len(b.params)
		}
		return n
	}
	blocks := 0
	for _, u := range m.units {
		blocks += count(u)
	}
	first := 0
	for first < len(m.params) && m.atEntry(m.params[first]) {
		first++
	}
	take(first)
	for _, u := range m.units {
		take(count(u))
	}
	take(len(m.params) - first - blocks)
	return list
}
