// Package parallel manages a rank's part of a model that several ranks train together: the mesh of ranks, and data
// parallelism with ZeRO stages 1 to 3 (Rajbhandari et al. 2020, arXiv 1910.02054). Stage 3 is also known as FSDP.
//
// Each rank runs the model on its own micro-batches. Every element of every parameter has one owner. When the backward
// pass of a unit ends, its gradient is sent to the owners piece by piece; the owner of a piece adds the terms of all
// ranks in the order of the micro-batches. So the sum has the same bits for any number of ranks. Owners update their
// pieces and give the new weights to all. The stages differ only in what a rank keeps in memory, not in the sums.
//
// Start with Deal (own.go), which assigns owners, then Shard (shard.go), then gradients.go and weights.go. The package
// imports comm, optim, nn, precision, autograd, device and tensor.
package parallel
