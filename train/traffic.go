package train

import (
	"anneal/comm"
	"anneal/tensor"
)

// Sent counts the bytes that a rank sends while it computes one micro-batch forward and backward. A tensor sent to
// several peers counts once for each.
type Sent struct {
	Tensor  int64 // to ranks that share layers
	Context int64 // to ranks that share rows
}

// weighed is a communicator that adds up the bytes that a rank sends.
type weighed struct {
	comm.Comm
	sent *int64
}

func (c weighed) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	t := &weighedTransfer{Transfer: c.Comm.NewExchange(name, out, room), group: c}
	t.weigh(out)
	return t
}

type weighedTransfer struct {
	comm.Transfer
	group weighed
	bytes int64 // of a message
}

func (t *weighedTransfer) Set(out, room [][]tensor.Tensor) {
	t.Transfer.Set(out, room)
	t.weigh(out)
}

func (t *weighedTransfer) weigh(out [][]tensor.Tensor) {
	t.bytes = 0
	for r, list := range out {
		for i := range list {
			if r != t.group.Rank() {
				t.bytes += int64(list[i].Bytes())
			}
		}
	}
}

func (t *weighedTransfer) Start(senders int) {
	t.Transfer.Start(senders)
	if t.group.Rank() < senders {
		*t.group.sent += t.bytes
	}
}
