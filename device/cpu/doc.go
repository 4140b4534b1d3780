// Package cpu runs training on the CPU: it implements device.Device with Go assembly in tiers (see isa) and a pool of
// workers (see pool).
//
// Matrix products live in gemm and attention in flash. Every other kernel is one file here, and all have one form: a job
// that is cut into tasks by the shapes alone, whose Do loads rows into scratch memory that stays in the first-level
// cache, passes them through the primitives of vec, and stores them; rows of bfloat16 go through one-pass primitives
// where the tier has them. Jobs belong to the engine, so calls allocate nothing.
//
// Start with device.go, then engine.go and view.go, then any kernel. The package may import tensor, device and the
// packages below it.
package cpu
