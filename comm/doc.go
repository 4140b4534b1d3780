// Package comm connects the ranks of a run: goroutines of one process (comm/local) or processes on many machines
// (comm/mpi), which may have a GPU each (comm/nccl). Ranks share short messages (Comm.Share) and exchange tensors
// (Comm.NewExchange).
//
// It never adds numbers. The receiver of the terms of a sum adds them in an order of its choice, so the order of a sum
// never depends on the transport. No call waits for ever: it ends with a *LostError when a rank is lost or the
// deadline has passed.
//
// Start with Comm. The package imports tensor.
package comm
