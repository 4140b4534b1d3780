// Package flash is attention on the CPU: tiled, with grouped queries, any pattern of a device.Layout, document masks and ALiBi, forward and
// backward (FlashAttention-2, Dao 2023, arXiv 2307.08691). It never forms [T, T]; scratch is O(T·E) per worker.
//
// Work is cut by the pattern alone: teams of heads that look at the same keys, steps of up to four blocks of queries (teams.go), tiles of
// 64 keys, neighbours or not, of which hidden ones are left out and only those at the edge are masked (tiles.go, hide.go).
//
// One layout makes packing and transposing of score tiles unnecessary. Scores are held transposed, one row per key and
// one column per query, in panels as wide as two vector registers:
//
//	S  [keys, queries]  = K · Qᵀ        softmax runs down the columns: no sums across lanes
//	O  [queries, E]    += Sᵀ · V        the first operand of a product may have any strides, because the kernel
//	dV [keys, E]       += P · dO        broadcasts its elements one by one
//
// With BF16 storage on the avx512bf16 tier all products are BF16 dot products with FP32 sums: probabilities and gradients of
// scores are rounded to BF16 as operands, as FlashAttention does. Maxima, row sums (of unrounded probabilities), the
// log-sum-exp and delta stay in FP32. The algorithm is the same; its operands come in words of two elements (kernels.go).
//
// On the amx tier matrix units do the same in two calls for a tile of keys, one forward and one backward (units.go): products of 32 × 32 sums,
// exponentials between them in AVX-512.
//
// linear.go is another attention on the same primitives, without a softmax, in time that grows with T.
//
// Start with forward.go, then backward.go and cached.go; kernels.go lists the primitives they stand on, in portable Go; gen writes the
// same primitives for AVX2, AVX-512 and AMX. Imports: tensor, device, device/cpu/isa, device/cpu/pool, device/cpu/vec.
package flash
