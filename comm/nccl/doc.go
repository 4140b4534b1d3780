// Package nccl connects ranks that have an NVIDIA GPU each. Tensors go from card to card by NVIDIA's NCCL; everything
// else goes by another group of the same ranks (comm/local, comm/mpi), which also says where NCCL's ranks meet.
//
// Only grouped sends and receives are used: NCCL's own sums add in an order of their own. They are queued on a stream
// of their own, behind the kernels that made what is sent; Wait has later kernels wait, not the host. So no call but
// Share, NewExchange and Close waits for another rank.
//
// NCCL neither knows which rank is late nor has deadlines. So a goroutine (watch.go) makes every transfer once more in
// the other group, with a few bytes that say what the ranks send. It ends all groups when a rank does not come, sends
// something else, or the library fails; NCCL is then told to give up what is on the cards. While the ranks meet in the
// library for the first time (open.go), the calls that may hang are made by a goroutine that can be left behind.
//
// A binary includes it if it was built with the tag cuda, on Linux. Start with Join. The package imports comm, tensor,
// device, device/cuda and internal/dynlib.
package nccl
