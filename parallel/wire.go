package parallel

import (
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// Gradients in a narrower format (precision.Wire). A rank that has computed the gradient of a unit encodes each
// parameter as a whole, so that blocks and random numbers do not depend on who owns what, and sends slices of the
// result. An owner decodes all slices, including its own. A piece of int8 begins with the block that contains its
// first element. Encoded gradients are in slots at every stage.

// coded reports whether gradients are encoded before they are sent.
func (s *Shard) coded() bool { return s.Wire != precision.WireF32 }

// slotted reports whether gradients are sent from slots, which later units reuse.
func (s *Shard) slotted() bool { return !s.keepsAll() || s.coded() }

// layCoded allocates the encoded gradients of a unit.
func (s *Shard) layCoded(a *tensor.Arena, u *unit) {
	for _, p := range u.params {
		u.coded = append(u.coded, s.Wire.Layout(a, p.Region.Len(), s.Grad))
	}
}

// cutCoded returns the pieces of a unit's encoded gradients, by owner. A piece of int8 is two tensors, codes and
// scales.
func (u *unit) cutCoded(ranks int) [][]tensor.Tensor {
	list := make([][]tensor.Tensor, ranks)
	for _, p := range u.pieces {
		c := &u.coded[p.Param-u.first]
		if c.Scales.IsZero() {
			list[p.Owner] = append(list[p.Owner], c.Numbers.Slice(p.From, p.To))
			continue
		}
		first, end := p.From/device.Block, (p.To+device.Block-1)/device.Block
		list[p.Owner] = append(list[p.Owner], c.Numbers.Slice(first*device.Block, p.To), c.Scales.Slice(first, end))
	}
	return list
}

// encode encodes the gradients of a unit, if the wire needs it. key identifies the step and the block.
func (u *unit) encode(dev device.Device, k precision.WireKey) {
	for i := range u.coded {
		k.Param = u.params[i].Number
		u.coded[i].Encode(dev, &u.params[i].Grad, k, 0)
	}
}

// layDecoded allocates room for the largest piece that this rank decodes.
func (s *Shard) layDecoded(a *tensor.Arena) {
	most := 0
	for _, o := range s.Mine {
		most = max(most, o.Piece.To-o.Piece.From/device.Block*device.Block)
	}
	s.decoded = a.New(s.Grad, most)
}

// foldDecoded adds the received slices of piece k of a unit, one rank after the other.
func (s *Shard) foldDecoded(u *unit, k int, o *Owned) {
	for r := range u.senders {
		from := u.gradients.From(r)[2*k:]
		c := precision.Coded{Numbers: from[0], Scales: from[1]}
		whole := s.decoded.Slice(0, c.Numbers.Len())
		c.Decode(s.dev, &whole)
		piece := whole.Slice(o.Piece.From%device.Block, whole.Len())
		s.terms = append(s.terms[:0], &piece)
		s.addTerms(o, u.add || r > 0)
	}
}
