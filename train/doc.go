// Package train turns a configuration and a data set into a trained model: the step, the loop around it, the guard,
// metrics, the run directory and its checkpoints, and the use of a finished run (evaluate, generate, export).
//
// Start with trainer.go (one optimizer step, and the order in which techniques apply) and loop.go (a run). The
// package is above model, optim, schedule and the data packages; cmd and lab call it.
//
// A run is exact: the same configuration, data and seed give the same bits for any number of threads and after any
// kill and resume. Three things ensure this: kernels whose sums have a fixed order, a data position that is a pure
// function of the sample counter, and checkpoints that hold all other state.
package train
