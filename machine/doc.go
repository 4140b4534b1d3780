// Package machine knows how fast a machine makes the kernel calls of training, and predicts calls of other sizes.
//
// Start with Profile (profile.go), which is what `anneal bench machine` measures and keeps. What follows from its
// samples is in rates.go. The package imports device, for
// what a call is.
package machine
