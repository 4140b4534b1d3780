package comm

import "anneal/tensor"

// Split divides a world into groups of equal size and returns that of this rank: rank m·groups + k of the world is rank
// m of group k. The number of ranks is a multiple of groups. Groups make the same calls in the same order, since their
// messages and transfers are those of the world; a group of one rank makes none.
func Split(world Comm, groups int) Comm {
	switch {
	case groups <= 1:
		return world
	case world.Size() == groups:
		return Alone{}
	}
	return part{world, groups}
}

// part is one of several groups of a world.
type part struct {
	Comm   // the world
	groups int
}

func (p part) Rank() int    { return p.Comm.Rank() / p.groups }
func (p part) Size() int    { return p.Comm.Size() / p.groups }
func (p part) Close() error { return nil } // others use the world

// ofWorld returns the rank in the world of rank m of this group.
func (p part) ofWorld(m int) int { return m*p.groups + p.Comm.Rank()%p.groups }

// Share implements Comm.
func (p part) Share(mine []byte) ([][]byte, error) {
	all, err := p.Comm.Share(mine)
	if err != nil {
		return nil, err
	}
	group := make([][]byte, p.Size())
	for m := range group {
		group[m] = all[p.ofWorld(m)]
	}
	return group, nil
}

// NewExchange implements Comm: nothing goes to other groups.
func (p part) NewExchange(name string, out, room [][]tensor.Tensor) Transfer {
	return partTransfer{p.Comm.NewExchange(name, p.spread(out), p.spread(room)), p}
}

// spread returns a list by rank of the group as one by rank of the world.
func (p part) spread(list [][]tensor.Tensor) [][]tensor.Tensor {
	if list == nil {
		return nil
	}
	wide := make([][]tensor.Tensor, p.Comm.Size())
	for m, x := range list {
		wide[p.ofWorld(m)] = x
	}
	return wide
}

type partTransfer struct {
	Transfer
	part part
}

// Start implements Transfer: the first senders of every group are the first ones of the world.
func (t partTransfer) Start(senders int)          { t.Transfer.Start(senders * t.part.groups) }
func (t partTransfer) From(m int) []tensor.Tensor { return t.Transfer.From(t.part.ofWorld(m)) }
