package commtest

import (
	"bytes"

	"anneal/comm"
	"anneal/tensor"
)

// Strict returns a rank of a group in which NewExchange and Start wait until every rank has called them, as a
// transport without buffers may do. A program that ends on such a group does not depend on buffers. All ranks of the
// group must be strict.
func Strict(c comm.Comm) comm.Comm { return &strict{Comm: c} }

type strict struct {
	comm.Comm
	messages [][]byte
	err      error // of meet
}

// Share gives copies, since every Start shares, too.
func (s *strict) Share(mine []byte) ([][]byte, error) {
	all, err := s.Comm.Share(mine)
	if err != nil {
		return nil, err
	}
	s.messages = s.messages[:0]
	for _, m := range all {
		s.messages = append(s.messages, bytes.Clone(m))
	}
	return s.messages, nil
}

func (s *strict) Group(ranks []int) (comm.Comm, error) {
	c, err := s.Comm.Group(ranks)
	return Strict(c), err
}

func (s *strict) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	t := s.Comm.NewExchange(name, out, room)
	s.meet()
	return &rendezvous{t, s}
}

// meet waits for all ranks.
func (s *strict) meet() {
	if _, err := s.Comm.Share(nil); err != nil {
		s.err = err
	}
}

type rendezvous struct {
	comm.Transfer
	rank *strict
}

func (t *rendezvous) Start(senders int) {
	t.Transfer.Start(senders)
	t.rank.meet()
}

func (t *rendezvous) Wait() error {
	if t.rank.err != nil {
		return t.rank.err
	}
	return t.Transfer.Wait()
}
