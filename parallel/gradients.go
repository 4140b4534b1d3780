package parallel

import (
	"slices"

	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// Gradients. A rank computes the gradient of a micro-batch from zero, unit by unit from the last to the first. The
// gradient of a complete unit is sent to the owners. While backward continues with the units before, owners add the
// gradients received, in the order of the micro-batches. This is also the order of the ranks: in round j, rank d has
// micro-batch j·D + d.
//
// Stages 0 and 1 keep the gradient of the whole model, and micro-batches compute theirs there. If every rank has at
// most one micro-batch per step, owners add in place. Stages 2 and 3 have slots for a few units. At stage 0 the sums
// are sent back to all ranks, and every rank updates everything.
//
// With blocks of several micro-batches (parallel.sum_block), "micro-batch" reads "block" above: a rank sums the
// gradients of a block before it sends them. At all stages it sums them in the gradient of the whole model.

// layGradients allocates the memory in which this rank computes gradients, receives them, and sums them.
func (s *Shard) layGradients(arena func(string) *tensor.Arena) {
	me, ranks := s.world.Rank(), s.world.Size()
	lay := func(a *tensor.Arena, u *unit) {
		for _, p := range u.params {
			p.Grad = a.New(s.Grad, p.Region.Shape()...)
		}
	}
	slot := func(u *unit) {
		if !s.keepsAll() {
			lay(arena(Slots), u)
		}
		if s.coded() {
			s.layCoded(arena(Slots), u)
		}
	}
	inPlace := s.keepsAll() && s.Micro <= ranks*s.Block
	sums := arena(Gradients)
	if s.keepsAll() {
		for i := range s.units {
			lay(arena(Gradients), &s.units[i])
		}
		sums = arena(Fold)
	}
	if s.Block > 1 {
		for i := range s.units {
			s.units[i].adding = NewAdding(arena(Fold), s.units[i].params, InPieces)
		}
	}
	if s.slotted() {
		slot(&s.units[0])
		s.ring(arena(Slots), len(s.filled), func(i int) { slot(&s.units[i]) })
	}
	sent := make([][][]tensor.Tensor, len(s.units))
	for i := range s.units {
		u := &s.units[i]
		if sent[i] = u.cut(u.grads(), ranks); s.coded() {
			sent[i] = u.cutCoded(ranks)
		}
	}
	room := s.rooms(arena, sent)
	for i := range s.units {
		u := &s.units[i]
		made := u.cut(u.grads(), ranks)
		for k, o := range u.mine {
			if o.grad = made[me][k]; !inPlace {
				o.grad = sums.New(s.Grad, o.grad.Len())
			}
		}
		u.gradients = s.world.NewExchange(u.name("the gradients"), sent[i], room[i])
		if s.Stage == 0 {
			u.sums = made
			var mine []tensor.Tensor
			for _, o := range u.mine {
				mine = append(mine, o.grad)
			}
			u.totals = s.world.NewExchange(u.name("the summed gradients"), toAll(mine, ranks), made)
		}
	}
}

// keepsAll reports whether the rank keeps the gradients of the whole model. With blocks it always does, because their
// gradients add up there.
func (s *Shard) keepsAll() bool { return s.Stage < 2 || s.Block > 1 }

// rooms allocates room for the tensors that other ranks send: for every unit, by rank, those of this rank's pieces.
// They have the shapes of the tensors that this rank sends to itself.
func (s *Shard) rooms(arena func(string) *tensor.Arena, sent [][][]tensor.Tensor) [][][]tensor.Tensor {
	list := make([][][]tensor.Tensor, len(s.units))
	if s.world.InPlace() {
		return list
	}
	lay := func(i int) {
		list[i] = make([][]tensor.Tensor, s.world.Size())
		for r := range list[i] {
			for _, t := range sent[i][s.world.Rank()] {
				if r != s.world.Rank() {
					list[i][r] = append(list[i][r], arena(Received).New(t.DType(), t.Len()))
				}
			}
		}
	}
	lay(0)
	s.ring(arena(Received), Lag+1, lay)
	return list
}

// sameRoom reports whether gradients of two units are received in the same memory.
func sameRoom(i, j int) bool { return i == j || i > 0 && j > 0 && (i-1)%(Lag+1) == (j-1)%(Lag+1) }

// Begin begins a round of a step, in which the first senders ranks have a block of micro-batches. Round 0 starts new
// sums; at stage 0 the sums of the last round are sent back to all ranks.
func (s *Shard) Begin(step, round, senders int, last bool) {
	s.add, s.senders, s.back = round > 0, senders, last && s.Stage == 0
	s.key = precision.WireKey{Seed: s.Seed, Step: step, Block: round*s.world.Size() + s.world.Rank()}
}

// Next begins the next micro-batch of a round, on all ranks. It may be the first of the blocks, the last, or both. A
// rank whose block ended earlier takes part, too.
func (s *Shard) Next(first, last bool) { s.first, s.last = first, last }

// Present reports whether this rank has a block in the round.
func (s *Shard) Present() bool { return s.world.Rank() < s.senders }

// Make waits until the gradient of unit u can be computed, that is, until all ranks have read the earlier contents of
// its memory.
func (s *Shard) Make(i int) error {
	u, before := &s.units[i], i
	if len(u.params) == 0 {
		return nil
	}
	if s.first {
		for _, p := range u.params {
			p.ResetGrad()
		}
	}
	u.adding.Begin()
	if s.slotted() && i > 0 {
		slot := &s.filled[(i-1)%len(s.filled)]
		before, *slot = *slot, i
		if before == 0 {
			return nil
		}
	}
	for slices.Contains(s.under, before) { // other ranks wait for this rank, too
		if err := s.fold(); err != nil {
			return err
		}
	}
	return s.units[before].gradients.Sent()
}

// Made says that the gradient of unit u is complete except for deferred products.
func (s *Shard) Made(i int) { s.units[i].adding.End(s.dev) }

// Send sends the gradient of unit u if a block ends here and this rank is present, and adds received gradients of
// earlier units.
func (s *Shard) Send(i int) error {
	u := &s.units[i]
	if u.adding.End(s.dev); !s.last || len(u.params) == 0 {
		return nil
	}
	if s.Present() {
		for _, p := range u.params {
			if !p.HasGrad() { // this micro-batch does not use it
				device.NegativeZero(s.dev, &p.Grad)
			}
		}
		u.encode(s.dev, s.key)
	}
	u.add, u.senders, u.back = s.add, s.senders, s.back
	// A pipeline meets units in another order than a single stage, whose units in flight all have rooms of their own.
	for !s.world.InPlace() && slices.ContainsFunc(s.under, func(j int) bool { return sameRoom(i, j) }) {
		if err := s.fold(); err != nil {
			return err
		}
	}
	u.gradients.Start(s.senders)
	s.under = append(s.under, i)
	if len(s.under) <= Lag {
		return nil
	}
	return s.fold()
}

// Drain adds the gradients that are still in flight.
func (s *Shard) Drain() error {
	for len(s.under) > 0 {
		if err := s.fold(); err != nil {
			return err
		}
	}
	return nil
}

// fold adds the gradients of the oldest unit in flight.
func (s *Shard) fold() error {
	i := s.under[0]
	u := &s.units[i]
	s.under = s.under[:copy(s.under, s.under[1:])]
	if err := u.gradients.Wait(); err != nil {
		return err
	}
	for k, o := range u.mine {
		if s.Wire == precision.WireInt8 {
			s.foldDecoded(u, k, o)
			continue
		}
		s.terms = s.terms[:0]
		for r := range u.senders {
			s.terms = append(s.terms, &u.gradients.From(r)[k])
		}
		s.addTerms(o, u.add)
	}
	u.gradients.Release()
	if u.back && (i > 0 || s.tie == nil) {
		s.summed = append(s.summed, i)
	}
	if len(s.summed) > Lag {
		return s.giveBack()
	}
	return nil
}

// giveBack begins to send the sums of the unit that was summed first to all ranks. They overwrite the terms, which the
// other ranks have read by now.
func (s *Shard) giveBack() error {
	u := &s.units[s.summed[0]]
	s.summed = s.summed[:copy(s.summed, s.summed[1:])]
	if err := u.gradients.Sent(); err != nil {
		return err
	}
	u.totals.Start(s.world.Size())
	return nil
}

// addTerms adds the terms of a piece to its sum, or makes them its sum.
func (s *Shard) addTerms(o *Owned, add bool) {
	if s.Folding != nil {
		s.Folding(o, s.terms)
	}
	s.dev.Fold(&o.grad, s.terms, add)
}

// Total waits until all ranks have the sums, at stage 0. The gradients of the parameters are then those of the whole
// batch, and no other rank reads them, so an update may overwrite them.
func (s *Shard) Total() error {
	if s.Stage > 0 {
		return nil
	}
	for len(s.summed) > 0 {
		if err := s.giveBack(); err != nil {
			return err
		}
	}
	for i := len(s.units) - 1; i >= 0; i-- {
		if u := &s.units[i]; len(u.params) > 0 {
			if err := s.total(u); err != nil {
				return err
			}
		}
	}
	for i := range s.units {
		if u := &s.units[i]; len(u.params) > 0 {
			if err := u.totals.Sent(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Shard) total(u *unit) error {
	if err := u.totals.Wait(); err != nil {
		return err
	}
	for r, sums := range u.sums {
		from := u.totals.From(r)
		for k := range from {
			if from[k].Pointer() != sums[k].Pointer() {
				s.dev.Copy(&sums[k], &from[k])
			}
		}
	}
	u.totals.Release()
	return nil
}

// SquareSums returns the sums of squares of this rank's pieces, stretch by stretch, in order.
func (s *Shard) SquareSums() []float64 {
	s.terms = s.terms[:0]
	n := 0
	for _, o := range s.Mine {
		if o.Counted > 0 {
			x := o.grad.Slice(0, o.Counted)
			s.terms = append(s.terms, &x)
			n += device.Stretches(&x)
		}
	}
	sums := make([]float64, n)
	s.dev.SquareSums(sums, s.terms...)
	return sums
}
