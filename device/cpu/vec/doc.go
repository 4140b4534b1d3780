// Package vec holds the CPU's vector primitives: loops over short rows that lie in the first-level cache. A Table is one
// tier's set; the kernels of package cpu load a row, pass it through a few of them and store it, so that a pass
// over memory does all the work a row needs.
//
// The tiers are pure Go (any machine, float32 and float64) and generated assembly for AVX2 and AVX-512 (float32).
// gen writes the assembly; `go generate` must give no difference. Reductions add in an order fixed by the tier and the
// length alone. Start with table.go, then exp.go for the one function that is not arithmetic.
//
// The package may import tensor and device/cpu/isa.
package vec

//go:generate go run ./gen
