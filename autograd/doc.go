// Package autograd holds the tape: fused operations in the order they ran, each with its own backward.
//
// The tape is define-by-run. A model's Forward calls methods of Tape; Backward walks the recorded operations in reverse.
// Three ideas keep memory small and known:
//
//   - What a backward needs is kept in one arena until its block's backward is done. What is cheap to compute again (a norm's output, an
//     activation function's output) is temporary: it is dropped when its block ends and computed again, bit for bit, in backward.
//   - The residual stream is one F32 buffer. Adding a branch to it consumes the old value, and its gradient is one buffer too.
//   - Block wraps a part of the model that can be run again, gathered, skipped or placed elsewhere without changing the model.
//
// Random numbers are functions of their place (dropout.go), so that what runs again (recompute.go) finds the same.
//
// Start with tape.go; each operation is one file. The package imports device and tensor.
package autograd
