// Package plan says what a run will need before it starts: memory, part by part.
//
// It runs the model's own code in memory that does not exist, so that it cannot drift from the truth, and what it predicts is
// compared with what happened. Start with Memory. The package imports model, precision, and of the device the
// attention kernels, which tell the scratch that they take.
package plan
