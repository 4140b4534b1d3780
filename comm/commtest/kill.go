package commtest

import (
	"errors"

	"anneal/comm"
	"anneal/tensor"
)

// ErrKilled is the error of every call of a rank that Kill has ended.
var ErrKilled = errors.New("killed by a test")

// Kill returns a rank that is silent from its call number n on, counted from 0: the others never hear of it again, not
// even that it is gone. Share, Start, Set, Wait, Release and Sent count, in all of its groups together.
func Kill(c comm.Comm, n int) comm.Comm { return &mortal{c, &n} }

type mortal struct {
	comm.Comm
	left *int
}

// dies counts a call.
func (m *mortal) dies() bool {
	*m.left--
	return *m.left < 0
}

func (m *mortal) Group(ranks []int) (comm.Comm, error) {
	c, err := m.Comm.Group(ranks)
	return &mortal{c, m.left}, err
}

func (m *mortal) Share(mine []byte) ([][]byte, error) {
	if m.dies() {
		return nil, ErrKilled
	}
	return m.Comm.Share(mine)
}

func (m *mortal) Abort(err error) {
	if *m.left >= 0 {
		m.Comm.Abort(err)
	}
}

func (m *mortal) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	if *m.left < 0 {
		return silence{out[m.Rank()]}
	}
	return &mortalTransfer{m.Comm.NewExchange(name, out, room), m}
}

type mortalTransfer struct {
	comm.Transfer
	rank *mortal
}

func (t *mortalTransfer) Start(senders int) {
	if !t.rank.dies() {
		t.Transfer.Start(senders)
	}
}

func (t *mortalTransfer) Set(out, room [][]tensor.Tensor) {
	if !t.rank.dies() {
		t.Transfer.Set(out, room)
	}
}

func (t *mortalTransfer) Wait() error {
	if t.rank.dies() {
		return ErrKilled
	}
	return t.Transfer.Wait()
}

func (t *mortalTransfer) Release() {
	if !t.rank.dies() {
		t.Transfer.Release()
	}
}

func (t *mortalTransfer) Sent() error {
	if t.rank.dies() {
		return ErrKilled
	}
	return t.Transfer.Sent()
}

// silence is a transfer of a lost rank.
type silence struct{ mine []tensor.Tensor }

func (silence) Start(int)                  {}
func (silence) Set(_, _ [][]tensor.Tensor) {}
func (silence) Wait() error                { return ErrKilled }
func (s silence) From(int) []tensor.Tensor { return s.mine }
func (silence) Release()                   {}
func (silence) Sent() error                { return ErrKilled }
