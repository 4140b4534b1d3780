package commtest

import (
	"bytes"

	"anneal/comm"
	"anneal/tensor"
)

// Strict returns a rank of a group in which Start waits until every rank has started, as a transport may that has no
// buffers. A program that ends on it does not depend on buffers. All ranks of the group must be strict.
func Strict(c comm.Comm) comm.Comm { return &strict{Comm: c} }

type strict struct {
	comm.Comm
	messages [][]byte
	err      error // of a Start
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

func (s *strict) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	return &rendezvous{s.Comm.NewExchange(name, out, room), s}
}

type rendezvous struct {
	comm.Transfer
	rank *strict
}

func (t *rendezvous) Start(senders int) {
	t.Transfer.Start(senders)
	if _, err := t.rank.Comm.Share(nil); err != nil {
		t.rank.err = err
	}
}

func (t *rendezvous) Wait() error {
	if t.rank.err != nil {
		return t.rank.err
	}
	return t.Transfer.Wait()
}
