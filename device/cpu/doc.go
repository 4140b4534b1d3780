// Package cpu implements device.Device on the CPU, with Go assembly in tiers (see isa) and a pool of workers (see
// pool).
//
// Matrix products are in gemm and attention in flash. Every other kernel is one file here, and all have the same
// form: a job, cut into tasks by the shapes alone, whose Do loads rows into scratch memory in the first-level cache,
// applies the primitives of vec, and stores the rows. Rows of bfloat16 use one-pass primitives if the tier has them.
// Jobs belong to the engine, so calls do not allocate.
//
// Start with device.go, then engine.go and view.go, then any kernel. The package may import tensor, device and the
// packages below it.
package cpu
