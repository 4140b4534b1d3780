// Package gemm multiplies matrices on the CPU: the three products of training (device.NN, NT, TN) in FP32, BF16,
// FP16, TF32 and FP64.
//
// The result of a product is cut into tiles. A worker takes a tile and processes its K blocks in order. It copies
// ("packs") the blocks of the operands into its own scratch memory, in the order in which the kernel reads them,
// converts them on the way, and adds the block's contribution to the tile in FP32. The cut of K depends only on its
// length, and workers never share a K, so the bits of a result depend on the tier and the shape, not on the number of
// threads.
//
// FP32 operands are multiplied by FMA, and in the sme tier of arm64 by outer products, 16×16 sums at a time.
//
// BF16 operands are multiplied in one of four ways. The amx tier multiplies tiles of 16×32 and 32×16, about ten
// times as fast as FMA. The avx512bf16 tier keeps pairs of BF16 and uses the dot product instruction, which is fast
// on AMD. The bf16 tier of arm64 multiplies 2×4 by 4×2 elements (BFMMLA). The other tiers widen BF16 to FP32 while
// packing, which makes every product exact, and then multiply in FP32. FP16 and TF32 operands are always rounded and
// held in FP32, which is not faster. Weights of a blocked format (tensor.Q8 and others) are multiplied in FP32, and
// only as the second operand of NT.
//
// Reading order: engine.go (precisions), task.go (order of the computation), cut.go (block sizes), deal.go
// (assignment of tasks), kernel.go (the inner kernel), strip.go, striprows.go and stripcut.go (the same for tiles),
// outer.go (for outer products), pack.go, ahead.go (prefetching) and few.go (products of few rows, as in generation; of
// blocked weights in blocked_amd64.go). gen writes the assembly.
// Measure and Peak provide the figures of benchmarks.
//
// It may import device, tensor, isa and pool.
package gemm

//go:generate go run ./gen
