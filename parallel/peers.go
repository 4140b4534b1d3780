package parallel

import (
	"anneal/autograd"
	"anneal/comm"
	"anneal/tensor"
)

// Peers presents the ranks of a group to the operations of a tape. It implements autograd.Peers.
type Peers struct {
	group     comm.Comm
	transfer  comm.Transfer
	out, room [][]tensor.Tensor
	in        []tensor.Tensor
}

// NewPeers returns the peers of a group; nil for a group of one rank.
func NewPeers(name string, group comm.Comm) autograd.Peers {
	if group.Size() == 1 {
		return nil
	}
	n := group.Size()
	p := &Peers{group: group, out: make([][]tensor.Tensor, n), in: make([]tensor.Tensor, n)}
	if !group.InPlace() {
		p.room = make([][]tensor.Tensor, n)
	}
	p.transfer = group.NewExchange(name, p.out, p.room)
	return p
}

// Rank implements autograd.Peers.
func (p *Peers) Rank() int { return p.group.Rank() }

// Size implements autograd.Peers.
func (p *Peers) Size() int { return p.group.Size() }

// InPlace implements autograd.Peers.
func (p *Peers) InPlace() bool { return p.group.InPlace() }

// Exchange implements autograd.Peers.
func (p *Peers) Exchange(out, room []tensor.Tensor) []tensor.Tensor {
	set(p.out, out)
	set(p.room, room)
	p.transfer.Set(p.out, p.room)
	p.transfer.Start(p.group.Size())
	check(p.transfer.Wait())
	for r := range p.in {
		p.in[r] = tensor.Tensor{}
		if from := p.transfer.From(r); len(from) > 0 {
			p.in[r] = from[0]
		}
	}
	p.in[p.group.Rank()] = out[p.group.Rank()]
	return p.in
}

// set makes lists of at most one tensor for each rank.
func set(lists [][]tensor.Tensor, x []tensor.Tensor) {
	for r := range lists {
		if lists[r] = lists[r][:0]; r < len(x) && !x[r].IsZero() {
			lists[r] = append(lists[r], x[r])
		}
	}
}

// Release implements autograd.Peers.
func (p *Peers) Release() {
	p.transfer.Release()
	check(p.transfer.Sent())
}

// lost is the panic value of an operation whose peers are lost.
type lost struct{ error }

func check(err error) {
	if err != nil {
		panic(lost{err})
	}
}

// Recover turns the panic of an operation whose peers are lost into an error. Defer it in functions that run a tape.
func Recover(err *error) {
	switch e := recover().(type) {
	case nil:
	case lost:
		*err = e.error
	default:
		panic(e)
	}
}
