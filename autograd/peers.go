package autograd

import "anneal/tensor"

// Peers are ranks that run the same tape at the same time, each on its part of the weights (tensor parallelism) or of
// the tokens (context parallelism). All make the same calls in the same order. If a rank is lost, the calls of all
// others panic with an error as the value. The code that runs forward and backward passes recovers it.
type Peers interface {
	Rank() int
	Size() int

	// InPlace reports whether tensors are read in the memory of the peer that made them, so that receiving needs no
	// memory.
	InPlace() bool

	// Exchange sends out[r] to every peer r and returns the tensors received, by peer, which are valid until Release;
	// in[Rank()] is out[Rank()]. A zero tensor stands for nothing. room[r] receives the tensor from peer r and has its
	// shape and dtype. If InPlace is true, room is not used and may be nil.
	Exchange(out, room []tensor.Tensor) (in []tensor.Tensor)

	// Release says that this rank has read the tensors received, and waits until its peers have read the tensors that
	// it sent. Their memory may then change.
	Release()
}
