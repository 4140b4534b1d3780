// Package tensor holds the foundation of all other packages: shapes and dtypes, arenas of memory outside the Go heap,
// the small numeric formats (bf16, fp16, fp8, tf32), and a counter-based random number generator.
//
// Start with Tensor (tensor.go) and Arena (arena.go). Of this module, the package imports only internal/floats.
package tensor
