package parallel

import (
	"fmt"

	"anneal/comm"
)

// Sizes are the numbers of ranks along the axes of a mesh; 0 means 1.
type Sizes struct {
	Tensor   int // ranks that share every layer
	Context  int // ranks that share the tokens of a sequence
	Pipeline int // stages
}

// Product returns the number of ranks that share one micro-batch.
func (s Sizes) Product() int { return max(s.Tensor, 1) * max(s.Context, 1) * max(s.Pipeline, 1) }

// A Place is the position of a rank in a mesh.
type Place struct {
	Stage int // of the pipeline
	Data  int // number of the replica whose micro-batches it works on
	Chunk int // context parallelism: its share of the tokens of a sequence
	Cut   int // which part of every layer
}

// At returns the place of a rank. Tensor parallelism varies fastest, so that its ranks are neighbours, and the
// pipeline slowest.
func (s Sizes) At(rank, ranks int) Place {
	t, c := max(s.Tensor, 1), max(s.Context, 1)
	data := ranks / s.Product()
	return Place{
		Cut: rank % t, Chunk: rank / t % c, Data: rank / (t * c) % data, Stage: rank / (t * c * data),
	}
}

// A Mesh is a rank's place among all ranks, and its groups. A group of one rank is comm.Alone.
type Mesh struct {
	Sizes
	Place
	World    comm.Comm
	Replicas int       // data parallelism: ranks with micro-batches of their own
	Peers    comm.Comm // of tensor parallelism
	Sequence comm.Comm // of context parallelism
	Sums     comm.Comm // ranks whose gradients are added: rank Data·Context + Chunk
	Ends     comm.Comm // the first and the last stage, which both have a tied table; nil on other stages

	forward, backward [2]comm.Comm // pairs of neighbours in the pipeline: from the stage before, to the stage after
}

// NewMesh makes the groups of a rank. All ranks of the world call it.
func NewMesh(world comm.Comm, s Sizes) (*Mesh, error) {
	if n := s.Product(); world.Size()%n != 0 {
		return nil, fmt.Errorf("parallel: %d ranks are no multiple of %d", world.Size(), n)
	}
	s = Sizes{max(s.Tensor, 1), max(s.Context, 1), max(s.Pipeline, 1)}
	m := &Mesh{Sizes: s, Place: s.At(world.Rank(), world.Size()), World: world, Replicas: world.Size() / s.Product()}
	var err error
	group := func(n int, place func(i int, at *Place)) comm.Comm {
		if n == 1 || err != nil {
			return comm.Alone{}
		}
		ranks := make([]int, n)
		for i := range ranks {
			at := m.Place
			place(i, &at)
			ranks[i] = m.rank(at)
		}
		var c comm.Comm
		c, err = world.Group(ranks)
		return c
	}
	m.Peers = group(s.Tensor, func(i int, at *Place) { at.Cut = i })
	m.Sequence = group(s.Context, func(i int, at *Place) { at.Chunk = i })
	m.Sums = group(m.Replicas*s.Context, func(i int, at *Place) { at.Data, at.Chunk = i/s.Context, i%s.Context })
	last := s.Pipeline - 1
	if last > 0 && (m.Stage == 0 || m.Stage == last) {
		m.Ends = group(2, func(i int, at *Place) { at.Stage = i * last })
	}
	for from := range s.Pipeline { // in the same order on all ranks
		to := (from + 1) % s.Pipeline
		if from == to {
			break
		}
		for _, pair := range [][2]int{{from, to}, {to, from}} {
			if m.Stage != from && m.Stage != to {
				continue
			}
			g := group(2, func(i int, at *Place) { at.Stage = pair[i] })
			ends := &m.forward
			if pair[0] == to {
				ends = &m.backward
			}
			if m.Stage == from {
				ends[1] = g
			} else {
				ends[0] = g
			}
		}
	}
	return m, err
}

// Alone returns the mesh of a single rank.
func Alone() *Mesh {
	m, err := NewMesh(comm.Alone{}, Sizes{})
	if err != nil {
		panic(err)
	}
	return m
}

// Pairs are the two groups of this rank and a neighbour in the pipeline: Forward sends the stream to the stage after,
// Backward sends its gradient back. The first rank of a pair sends.
type Pairs struct{ Forward, Backward comm.Comm }

// Neighbours returns the pairs with the stage before and the stage after. The stages form a circle: the last is before
// the first.
func (m *Mesh) Neighbours() (before, after Pairs) {
	return Pairs{m.forward[0], m.backward[0]}, Pairs{m.forward[1], m.backward[1]}
}

// rank returns the rank, in the world, at a place.
func (m *Mesh) rank(at Place) int {
	return ((at.Stage*m.Replicas+at.Data)*m.Context+at.Chunk)*m.Tensor + at.Cut
}

// At returns the place of a rank.
func (m *Mesh) At(rank int) Place { return m.Sizes.At(rank, m.World.Size()) }

// First reports whether this rank has the beginning of the model.
func (m *Mesh) First() bool { return m.Stage == 0 }

// Last reports whether this rank has the end of the model.
func (m *Mesh) Last() bool { return m.Stage == m.Pipeline-1 }
