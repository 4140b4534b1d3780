// Package run manages runs: the loop, the run directory and its files, saving and restoring, metrics and the journal,
// reports and summaries, and operations on runs: rewind, branch, average, import, verify.
//
// Start with loop.go (a run), then rundir.go (its directory), checkpointstate.go (the contents of a checkpoint besides
// tensors), ranks.go and agree.go (a run on several ranks) and weights.go (the weights of a run, for package use). The
// package may import plan, train, interop, prepare, checkpoint, config and packages below them. Package train makes
// the steps.
//
// A run is exact: the same configuration, data and seed give the same bits for any number of threads and after any
// kill and resume. Three things ensure this: kernels whose sums have a fixed order, a data position that is a pure
// function of the sample counter, and checkpoints that hold all other state.
package run
