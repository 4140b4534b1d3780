package comm

import "anneal/tensor"

// A Comm is one rank's view of a group of ranks. All ranks of a group call Share, NewExchange and the methods of its
// transfers in the same order, each from one goroutine at a time. After an error, every later call fails on all ranks.
type Comm interface {
	Rank() int
	Size() int

	// Share sends mine to all ranks and returns the messages of all, by rank. It waits for all ranks. Messages may
	// have different lengths, and are valid until the next call.
	Share(mine []byte) (all [][]byte, err error)

	// NewExchange prepares a transfer that sends tensors out[r] to rank r, for every rank but this one. The tensors
	// from rank r arrive in room[r], whose tensors have the same shapes and dtypes. If InPlace is true, room is not
	// used and may be nil. Errors use the name to say what is exchanged. The lists are copied. NewExchange may wait
	// for all ranks.
	NewExchange(name string, out, room [][]tensor.Tensor) Transfer

	// InPlace reports whether receivers read tensors in the sender's memory, so that they need no memory of their own.
	InPlace() bool

	// Group returns this rank's view of a group of some ranks of this group, in the order of the list. Each of these
	// ranks calls Group with the same list. If two groups have two or more ranks in common, these ranks create the
	// groups in the same order. Groups work independently of each other, except that a lost rank ends all of them.
	// Errors name ranks by their numbers in the world, which is the first group. Closing any other group does nothing.
	Group(ranks []int) (Comm, error)

	// Abort ends every call of every rank, present or future, with a *LostError that wraps err.
	Abort(err error)

	// Close releases the group's resources. No call may be in progress.
	Close() error
}

// A Transfer is prepared once and used many times: Start, Wait, From, Release. It allocates nothing. Several transfers
// of a group may be in flight; all ranks start them in the same order.
type Transfer interface {
	// Set replaces the tensors to send, and the room for those to receive, from the next Start on. The lists are
	// copied, so the caller may reuse them. Before the call this rank must have called Release, and Sent must have
	// returned. Either all ranks call Set or none.
	Set(out, room [][]tensor.Tensor)

	// Start begins the transfer. The first senders ranks send; the others only receive. The tensors sent must not
	// change until Sent returns.
	Start(senders int)

	// Wait waits until the tensors from all senders have arrived.
	Wait() error

	// From returns the tensors received from rank r, valid from Wait to Release. For this rank itself it returns
	// out[r].
	From(r int) []tensor.Tensor

	// Release says that this rank has read the tensors received.
	Release()

	// Sent waits until the tensors sent by the last Start may change, because all receivers have released them or have
	// copies. If Start was never called, it returns at once.
	Sent() error
}
