// Package run is a run's life: the loop, the run directory and its files, saving and restoring, metrics and the
// journal, reports and summaries, and what is done to a run: rewind, branch, average, import, verify.
//
// Start with loop.go (a run), then rundir.go (its directory), checkpointstate.go (what a checkpoint holds beside
// tensors), ranks.go and agree.go (a run on several ranks) and weights.go (the weights of a run, for package use). The
// package may import plan, train, interop, prepare, checkpoint, config and what stands below them. A step is package
// train's.
//
// A run is exact: the same configuration, data and seed give the same bits for any number of threads and after any
// kill and resume. Three things ensure this: kernels whose sums have a fixed order, a data position that is a pure
// function of the sample counter, and checkpoints that hold all other state.
package run
