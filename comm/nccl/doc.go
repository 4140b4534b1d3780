// Package nccl connects ranks that have an NVIDIA GPU each. NVIDIA's NCCL sends tensors from card to card. Everything
// else goes through another group of the same ranks (comm/local, comm/mpi), which also distributes NCCL's id.
//
// Only grouped sends and receives are used, because NCCL's reductions add in an unspecified order. They are queued on
// a separate stream, behind the kernels that compute the tensors sent. Wait makes later kernels wait, not the host. So
// only Share, NewExchange and Close wait for other ranks.
//
// NCCL neither knows which rank is late nor has deadlines. So a goroutine (watch.go) repeats every transfer in the
// other group, with a few bytes that describe the tensors. It ends all groups when a rank is missing or sends
// something else, or when the library fails; NCCL is then told to abort the work queued on the cards. While the ranks
// meet in the library for the first time (open.go), the calls that may hang are made by a goroutine that can be left
// behind.
//
// A binary includes it if it was built with the tag cuda, on Linux. Start with Join. The package imports comm, tensor,
// device, device/cuda and internal/dynlib.
package nccl
