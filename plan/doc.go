// Package plan predicts the memory of a run before it starts, part by part.
//
// It runs the model's own code without allocating memory, so the figures are exact, and runs compare them with the
// measured memory. Start with Memory. The package imports model, precision and, from device, the attention kernels,
// which report their scratch memory.
package plan
