// Package compress makes the weights of a trained matrix coarser or fewer: rounding to few bits, plainly
// (quantise.go) or so that the products change little (gptq.go), and pruning, of weights (prune.go)
// or of whole heads and channels (units.go). A matrix is [rows, cols], outputs by inputs, in row order. Rounded
// weights stay in FP32: the package says what a format would cost, and does not store it. The package imports no other
// package of this module.
//
// Start with Grid (quantise.go).
package compress
