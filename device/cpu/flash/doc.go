// Package flash implements attention on the CPU: tiled, with grouped queries, any pattern of a device.Layout,
// document masks and ALiBi, forward and backward (FlashAttention-2, Dao 2023, arXiv 2307.08691). It never forms [T,
// T]; scratch memory is O(T·E) per worker.
//
// The pattern alone determines how work is cut: into teams of heads that see the same keys, steps of up to four
// blocks of queries (teams.go), and tiles of 64 keys, contiguous or not. Hidden tiles are skipped and only those at
// the edge are masked (tiles.go, hide.go).
//
// One memory layout avoids packing and transposing tiles of scores. Scores are stored transposed, one row per key and
// one column per query, in panels of two vector registers (four on NEON):
//
//	S  [keys, queries]  = K · Qᵀ        softmax runs down the columns: no sums across lanes
//	O  [queries, E]    += Sᵀ · V        the first operand of a product may have any strides, because the kernel
//	dV [keys, E]       += P · dO        broadcasts its elements one by one
//
// With BF16 storage on the tiers avx512bf16 and bf16 all products are BF16 dot products with FP32 sums: as in
// FlashAttention, probabilities and gradients of scores are rounded to BF16 as operands. Maxima, row sums (of unrounded
// probabilities), the log-sum-exp and delta stay in FP32. The algorithm is the same, with operands in words of two
// elements, or groups of four for BFMMLA (kernels.go).
//
// On the amx tier, matrix units process a tile of keys in two calls, one forward and one backward (units.go):
// products of 32 × 32 sums, and exponentials between them in AVX-512.
//
// Many short rows, up to 16 tokens, are computed in columns instead, as many rows side by side as a panel is wide
// (columns.go), with the same bits; where words are pairs, several of them share a block (short.go).
//
// linear.go implements linear attention with the same primitives: without a softmax, in time linear in T.
//
// Terms:
//
//   - unit: a block of up to 64 queries of one head; step: up to four units that share the tiles of keys.
//   - panel: queries side by side, as wide as two vector registers; tile: up to 64 keys.
//   - across, down: words that hold elements adjacent along the row, or along the column (see kernels).
//   - lead: words before the elements of queries and keys, for ALiBi.
//   - wave: steps of one head on several workers, each following the one before it over the keys.
//
// Start with forward.go, then backward.go and cached.go. kernels.go lists the primitives, in portable Go; gen writes
// the same primitives for AVX2, AVX-512, AMX and NEON. Imports: tensor, device, internal/isa, device/cpu/pool,
// device/cpu/vec.
package flash
