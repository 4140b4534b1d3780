package autograd

import "anneal/tensor"

// Peers are ranks that run the same tape at the same time, each on its part of the weights (tensor parallelism) or of
// the tokens (context parallelism). All make the same calls in the same order. A rank that is lost ends the call of
// every other with a panic, whose value is an error; who runs forward and backward passes recovers it.
type Peers interface {
	Rank() int
	Size() int

	// InPlace reports whether tensors are read where a peer made them, so that what comes needs no room.
	InPlace() bool

	// Exchange gives out[r] to every peer r and returns what came, by peer, valid until Release; in[Rank()] is
	// out[Rank()]. A zero tensor stands for nothing. room[r] is where it arrives from peer r, of the shape and dtype of
	// what r sends; it is not used, and may be nil, where InPlace is true.
	Exchange(out, room []tensor.Tensor) (in []tensor.Tensor)

	// Release says that this rank has read what came, and waits until its peers have read what it sent: that memory may
	// then change.
	Release()
}
