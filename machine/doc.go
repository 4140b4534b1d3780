// Package machine holds measured times of a machine's kernel calls in training, and predicts calls of other sizes.
//
// Start with Profile (profile.go), which `anneal bench machine` measures and saves. rates.go predicts times from its
// samples. The package imports device, which defines calls.
package machine
