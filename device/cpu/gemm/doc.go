// Package gemm multiplies matrices on the CPU: the three products of training (device.NN, NT, TN) in FP32, BF16, FP16, TF32
// and FP64.
//
// A product is cut into tiles of the result; a worker takes a tile, walks its K blocks in order, copies ("packs") the
// operands' blocks into its own scratch memory in the order in which the kernel reads them, converting them on the way, and adds
// the block's contribution to the tile in FP32. K is cut by its length alone and never shared among workers, so the bits of a
// result depend on the tier and on the shape, not on the number of threads.
//
// BF16 operands are multiplied in one of three ways. The amx tier multiplies tiles of 16×32 and 32×16 of them, about ten times as
// fast as FMA; the avx512bf16 tier keeps pairs of them and uses the dot product instruction, which is fast on AMD; the other
// tiers widen them to FP32 while packing, which makes every product exact, and use FMA. FP16 and TF32 operands are always
// held in FP32 that way: rounded, not faster.
//
// Start at engine.go (which precision), go on to task.go (what is computed in which order), cut.go (block sizes), deal.go (who computes it), kernel.go (the inner
// kernel), strip.go, striprows.go and stripcut.go (the same for tiles), pack.go, ahead.go (how memory is asked for early) and few.go (a few rows, as when generating). gen writes the assembly. Measure and Peak
// are the figures that benchmarks print.
//
// It may import device, tensor, isa and pool.
package gemm

//go:generate go run ./gen
