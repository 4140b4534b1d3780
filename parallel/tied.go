package parallel

import (
	"anneal/comm"
	"anneal/tensor"
)

// A tied table is on the first stage of a pipeline as the embedding, and on the last as the head. Each stage has a
// copy with the same owners, state and updates. Only the sums of its gradient are exchanged and added, once per step.

// tie is the exchange of a tied table's sums between the two stages.
type tie struct {
	sums  comm.Transfer
	mine  []tensor.Tensor // of the owned pieces
	other []tensor.Tensor // the same pieces, from the other stage
}

// Replica reports whether parameter 0 is the second copy of a tied table. Another rank has the first copy, counts it
// in norms and saves it.
func (s *Shard) Replica() bool { return s.tie != nil && s.Tied.Rank() == 1 }

// layTied allocates room for the other stage's sums.
func (s *Shard) layTied(arena func(string) *tensor.Arena) {
	if s.Tied == nil {
		return
	}
	s.tie = &tie{}
	for _, o := range s.units[0].mine {
		if o.Piece.Param == 0 {
			s.tie.mine = append(s.tie.mine, o.grad)
			s.tie.other = append(s.tie.other, arena(Received).New(s.Grad, o.grad.Len()))
		}
	}
	s.tie.sums = s.Tied.NewExchange("the gradients of the tied table", toAll(s.tie.mine, 2), toAll(s.tie.other, 2))
}

// Tie adds the gradient sums of both copies of a tied table. Call it after Drain.
func (s *Shard) Tie() error {
	if s.tie == nil {
		return nil
	}
	t := s.tie
	t.sums.Start(2)
	if err := t.sums.Wait(); err != nil {
		return err
	}
	if s.Tied.InPlace() {
		from := t.sums.From(1 - s.Tied.Rank())
		for k := range from {
			s.dev.Copy(&t.other[k], &from[k])
		}
	}
	t.sums.Release()
	if err := t.sums.Sent(); err != nil { // the other stage has read these sums
		return err
	}
	for k := range t.mine {
		s.dev.Add(&t.mine[k], &t.other[k])
	}
	if s.Stage == 0 {
		s.summed = append(s.summed, 0)
	}
	return nil
}
