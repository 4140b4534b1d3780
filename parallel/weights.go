package parallel

import (
	"anneal/comm"
	"anneal/tensor"
)

// Weights. An owner has the authoritative weights of its pieces. Computing reads copies of whole parameters. At stages
// 0 to 2 every rank has the copies of all units all the time. At stage 3 there are two slots: one holds the unit that
// is computing, and the next unit arrives in the other. Every rank always has the tables of the first unit (the
// embedding, and the head if it is tied).
//
// A copy has the format in which products read it. So a matrix of policy bf16 takes 2 bytes per element in memory and
// in messages. Products round their operands to BF16 anyway, so this changes no bit.

// layWeights allocates the weights that this rank keeps.
func (s *Shard) layWeights(arena func(string) *tensor.Arena) {
	whole, masters := arena(Parameters), arena(MasterWeights)
	me, ranks := s.world.Rank(), s.world.Size()
	lay := func(a *tensor.Arena, u *unit) {
		for _, p := range u.params {
			_, compute := s.Formats(p)
			p.Value = a.New(compute, p.Region.Shape()...)
		}
		u.copies = u.cut(u.values(), ranks)
	}
	if s.Stage == 3 {
		masters = whole
		lay(arena(Gathered), &s.units[0])
		s.ring(arena(Gathered), len(s.slots), func(i int) { lay(arena(Gathered), &s.units[i]) })
	} else {
		for i := range s.units {
			lay(whole, &s.units[i])
		}
	}
	for i := range s.units {
		u := &s.units[i]
		for k, o := range u.mine {
			here := &u.copies[me][k]
			master, compute := s.Formats(u.params[o.Piece.Param-u.first])
			if o.value = *here; s.Stage == 3 || master != compute || s.Apart {
				o.value, o.copy = masters.New(master, here.Len()), here
			}
			o.shown = &o.value
		}
		u.weights = s.world.NewExchange(u.name("the weights"), toAll(u.copies[me], ranks), u.copies)
	}
}

// Publish begins to send the new weights of unit u to all ranks. Call it once the pieces of the unit are updated.
func (s *Shard) Publish(u int) error {
	if s.Stage == 0 {
		return nil // every rank updates all
	}
	if s.Stage == 3 && u > 0 { // they are sent when they are needed
		s.slots = [2]int{}
		return nil
	}
	return s.fetch(u)
}

// Show makes computing read other weights: one tensor for each of Mine, or the authoritative weights if weights is
// nil. At stage 0 weights are not sent, and Show does nothing.
func (s *Shard) Show(weights []tensor.Tensor) error {
	for i, o := range s.Mine {
		o.shown = &o.value
		if weights != nil {
			shown := weights[i].Reshape(weights[i].Len())
			o.shown = &shown
		}
	}
	for u := range s.units {
		if err := s.Publish(u); err != nil {
			return err
		}
	}
	return nil
}

// Init sets this rank's weights to their initial values for the seed.
func (s *Shard) Init(seed uint64) error {
	for i := range s.units {
		u := &s.units[i]
		for _, o := range u.mine {
			p := *u.params[o.Piece.Param-u.first]
			p.Value, p.First = o.value, o.Piece.From
			p.Init(s.dev, seed, p.Number)
		}
		for _, p := range u.params {
			if s.Stage == 0 {
				p.Init(s.dev, seed, p.Number)
			}
		}
	}
	if err := s.Show(nil); err != nil {
		return err
	}
	return s.Settle() // a resumed run loads other weights next
}

// fetch begins the transfer of the weights of unit u.
func (s *Shard) fetch(i int) error {
	u := &s.units[i]
	if len(u.params) == 0 {
		return nil
	}
	if err := s.arrive(i); err != nil { // earlier weights that were not needed
		return err
	}
	if err := u.weights.Sent(); err != nil { // other ranks may still read the copies
		return err
	}
	for _, o := range u.mine {
		if o.copy != nil {
			s.dev.Copy(o.copy, o.shown)
		}
	}
	u.weights.Start(s.world.Size())
	u.moving = true
	return nil
}

// arrive waits for the weights of unit u, if they are in flight.
func (s *Shard) arrive(i int) error {
	u := &s.units[i]
	if !u.moving {
		return nil
	}
	u.moving = false
	if err := u.weights.Wait(); err != nil {
		return err
	}
	if s.world.InPlace() {
		for r, copies := range u.copies {
			if r == s.world.Rank() {
				continue
			}
			from := u.weights.From(r)
			for k := range from {
				s.dev.Copy(&copies[k], &from[k])
			}
		}
	}
	u.weights.Release()
	return nil
}

// Settle waits until no transfer is in flight: the weights of all units have arrived, and other ranks have received
// everything from this rank. Only then may anything but a step, which tracks transfers, change the authoritative
// weights. All ranks call it.
func (s *Shard) Settle() error {
	for i := range s.units {
		if err := s.arrive(i); err != nil {
			return err
		}
		u := &s.units[i]
		for _, t := range []comm.Transfer{u.weights, u.gradients, u.totals} {
			if t == nil {
				continue
			}
			if err := t.Sent(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Need waits until the weights of unit u have arrived, and begins to receive those of unit next; 0 or less for none.
func (s *Shard) Need(u, next int) error {
	if s.Stage < 3 || u == 0 {
		return s.arrive(u)
	}
	if err := s.gather(u); err != nil {
		return err
	}
	if err := s.arrive(u); err != nil || next <= 0 {
		return err
	}
	return s.gather(next)
}

// gather begins to fill a slot with the weights of unit u, unless it has them.
func (s *Shard) gather(u int) error {
	slot := &s.slots[(u-1)%len(s.slots)]
	if *slot == u {
		return nil
	}
	if *slot > 0 {
		if err := s.arrive(*slot); err != nil { // not needed, but other ranks wait until it is read
			return err
		}
		if err := s.units[*slot].weights.Sent(); err != nil { // other ranks may still read its old contents
			return err
		}
	}
	*slot = u
	return s.fetch(u)
}
