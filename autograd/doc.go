// Package autograd records operations on a tape and computes gradients. Each fused operation has its own backward
// function.
//
// The tape is define-by-run. A model's Forward calls methods of Tape; Backward runs the recorded operations in
// reverse. Three ideas keep memory small and known:
//
//   - The keep arena holds what backward needs, until the backward of its block is done. Results that are cheap to
//     recompute (the output of a norm or of an activation function) are temporary: the block drops them, and backward
//     recomputes them bit for bit.
//   - The residual stream is one F32 buffer. Adding a branch consumes the old value. The gradient of the stream is
//     one buffer, too.
//   - Block wraps a part of the model, so that it can be recomputed, gathered, skipped or placed elsewhere without
//     changing the model.
//
// Terms:
//
//   - consumed: an operation wrote its result over the value, so the value must not be used again.
//   - dropped: the memory of a temporary value was released; its producer can recompute it.
//   - stream: the residual stream, [N, D], which every block reads and adds to.
//   - pending: while a segment is rerun, its last addition to the stream, done only if something reads the sum.
//   - fused: a backward function that recomputes its result in the same pass over memory as the gradient.
//
// Random numbers are functions of (seed, step, place), see dropout.go, so that recomputation (recompute.go) draws the
// same ones.
//
// Start with tape.go; each operation is one file. The package imports device and tensor.
package autograd
