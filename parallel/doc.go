// Package parallel is what a rank has of a model that several ranks train together: data parallelism, ZeRO stages 1 to
// 3 (Rajbhandari et al. 2020, arXiv 1910.02054), of which the third is known as FSDP.
//
// Each rank runs the model on micro-batches of its own. Every element of every parameter has one owner. When the
// backward pass of a unit ends, its gradient goes to the owners piece by piece; the owner of a piece adds the terms of
// all ranks in the order of the micro-batches. So the sum has the same bits for any number of ranks. Owners update
// their pieces and give the new weights to all. The stages differ in what a rank keeps, never in what is added.
//
// Start with Deal (own.go), which says who owns what, then Shard (shard.go), then gradients.go and weights.go. The
// package imports comm, optim, nn, precision, device and tensor.
package parallel
