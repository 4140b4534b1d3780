// Package absent provides groups in which only one rank exists. Plans use them to lay out the memory that this rank
// would have.
package absent

import (
	"anneal/comm"
	"anneal/tensor"
)

// New returns the given rank's view of a group of size ranks. inPlace says whether its transport would read tensors in
// place and need no memory to receive them.
func New(rank, size int, inPlace bool) comm.Comm { return group{rank, size, inPlace} }

// As returns the view that this rank of c would have of its group if the other ranks were absent.
func As(c comm.Comm) comm.Comm { return group{c.Rank(), c.Size(), c.InPlace()} }

type group struct {
	rank, size int
	inPlace    bool
}

func (g group) Rank() int     { return g.rank }
func (g group) Size() int     { return g.size }
func (g group) InPlace() bool { return g.inPlace }
func (g group) Abort(error)   {}
func (g group) Close() error  { return nil }

// Share gives every rank the same message.
func (g group) Share(mine []byte) ([][]byte, error) {
	all := make([][]byte, g.size)
	for r := range all {
		all[r] = mine
	}
	return all, nil
}

// Group implements comm.Comm.
func (g group) Group(ranks []int) (comm.Comm, error) {
	me, err := comm.Place(g, ranks)
	return group{me, len(ranks), g.inPlace}, err
}

// NewExchange returns a transfer in which nothing arrives.
func (g group) NewExchange(_ string, out, room [][]tensor.Tensor) comm.Transfer {
	t := &transfer{rank: g.rank}
	t.Set(out, room)
	return t
}

type transfer struct {
	rank      int
	out, room [][]tensor.Tensor
}

func (*transfer) Start(int)   {}
func (*transfer) Wait() error { return nil }
func (*transfer) Release()    {}
func (*transfer) Sent() error { return nil }

// Set implements comm.Transfer.
func (t *transfer) Set(out, room [][]tensor.Tensor) {
	t.out, t.room = comm.Keep(t.out, out), comm.Keep(t.room, room)
}

// From returns the room for the tensors that would come from rank r. Without room it returns tensors of the same
// shapes: this rank's own, or those that it sends.
func (t *transfer) From(r int) []tensor.Tensor {
	switch {
	case r == t.rank || len(t.room) == 0 && len(t.out[t.rank]) > 0:
		return t.out[t.rank]
	case len(t.room) > 0:
		return t.room[r]
	}
	for _, x := range t.out {
		if len(x) > 0 {
			return x
		}
	}
	return nil
}
