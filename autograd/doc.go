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
// Terms, as the fields of Tape, Var and node name them:
//
//   - stream: the residual stream, [N, D], which every block reads and adds to.
//   - kept, temporary: in the keep arena until backward of the block, or in the temp arena until the end of the block.
//   - dropped: the memory of a temporary value was released; its producer recomputes it in backward.
//   - consumed: an operation wrote its result over the value, so the value must not be used again.
//   - fused: the backward of an operation that also recomputes its result, in one pass over memory.
//   - inGrad: such a result was written over its own gradient, which was complete.
//   - inBlock: a value in the format of the stream that ends with its block; so does its gradient.
//   - rerunning: backward runs the forward pass of a segment again, recording it.
//   - pending: the last addition to the stream in such a rerun, which is done only if something reads the sum.
//
// Random numbers are functions of (seed, step, place), see dropout.go, so that recomputation (recompute.go) draws the
// same ones.
//
// Start with tape.go; each operation is one file. The package imports device and tensor.
package autograd
