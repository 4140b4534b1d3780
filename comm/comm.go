package comm

import "anneal/tensor"

// A Comm is a group of ranks as one of them sees it. All ranks of a group call Share, NewExchange and the methods of
// its transfers in the same order, each from one goroutine at a time. After an error, every later call fails, on all
// ranks.
type Comm interface {
	Rank() int
	Size() int

	// Share gives every rank's message to all, by rank. It waits for all ranks. The messages are valid until the next
	// call; they may have different lengths.
	Share(mine []byte) (all [][]byte, err error)

	// NewExchange prepares a transfer in which tensors out[r] go to rank r, for every r but this one. room[r] is where
	// those from rank r arrive; its tensors have the shapes and dtypes of what that rank sends here. Where InPlace is
	// true, room is not used and may be nil. The name says in errors what is exchanged. The
	// lists are copied. It may wait for all ranks.
	NewExchange(name string, out, room [][]tensor.Tensor) Transfer

	// InPlace reports whether tensors are read where their sender made them, so that a receiver needs no memory.
	InPlace() bool

	// Group returns the group of some ranks of this one, in the order of the list, as this rank sees it. Each of them
	// makes the call with the same list. If two groups share two ranks or more, these ask for them in the same order.
	// Groups work independently of each other, except that a lost rank ends all. Errors name ranks by their numbers in
	// the world, which is the first group. Closing another does nothing.
	Group(ranks []int) (Comm, error)

	// Abort ends every call, under way or to come, of every rank, with a *LostError that wraps err.
	Abort(err error)

	// Close releases what the group holds. Nobody may be in a call.
	Close() error
}

// A Transfer is prepared once and made many times: Start, Wait, From, Release. It allocates nothing. Several transfers
// of a group may be under way; all ranks start them in the same order.
type Transfer interface {
	// Set replaces what is sent, and the room for what comes, from the next Start on. The lists are copied, so the
	// caller may use theirs again. This rank has released what came, and Sent has returned. All ranks call it, or none.
	Set(out, room [][]tensor.Tensor)

	// Start begins to send, if this rank is one of the first senders; the other ranks only receive. What is sent may
	// not change until Sent.
	Start(senders int)

	// Wait waits until the tensors from all senders have arrived.
	Wait() error

	// From returns what came from rank r, valid from Wait to Release. For this rank itself it is out[r].
	From(r int) []tensor.Tensor

	// Release says that this rank has read what came.
	Release()

	// Sent waits until what the last Start sends may change again: everybody has released it, or has a copy. Without a
	// Start before, it returns at once.
	Sent() error
}
