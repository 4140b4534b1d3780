// Package vec holds the CPU's vector primitives: loops over short rows in the first-level cache. A Table is one
// tier's set. The kernels of package cpu load a row, apply several primitives and store it, so that one pass over
// memory does all the work of a row.
//
// The tiers are pure Go (any machine, float32 and float64) and generated assembly for AVX2, AVX-512 and NEON
// (float32). gen writes the assembly; `go generate` must give no difference. The order of additions depends only on
// the tier and the length. Start with table.go, then exp.go for the exponential.
//
// The package may import tensor and internal/isa.
package vec

//go:generate go run ./gen
