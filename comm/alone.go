package comm

import "anneal/tensor"

// Alone is a group of one rank.
type Alone struct{}

func (Alone) Rank() int     { return 0 }
func (Alone) Size() int     { return 1 }
func (Alone) InPlace() bool { return true }
func (Alone) Abort(error)   {}
func (Alone) Close() error  { return nil }

// Share returns the message.
func (Alone) Share(mine []byte) ([][]byte, error) { return [][]byte{mine}, nil }

// Group returns the rank itself.
func (a Alone) Group(ranks []int) (Comm, error) {
	_, err := Place(a, ranks)
	return a, err
}

// NewExchange returns a transfer of nothing; the lists may be nil.
func (Alone) NewExchange(_ string, out, room [][]tensor.Tensor) Transfer {
	t := &nothing{}
	t.Set(out, room)
	return t
}

// nothing is the transfer of a single rank, which receives what it sends.
type nothing struct{ mine []tensor.Tensor }

func (*nothing) Start(int)                  {}
func (*nothing) Wait() error                { return nil }
func (n *nothing) From(int) []tensor.Tensor { return n.mine }
func (*nothing) Release()                   {}
func (*nothing) Sent() error                { return nil }
func (n *nothing) Set(out, _ [][]tensor.Tensor) {
	if n.mine = n.mine[:0]; len(out) > 0 {
		n.mine = append(n.mine, out[0]...)
	}
}
