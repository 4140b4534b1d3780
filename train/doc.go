// Package train turns a configuration and a data set into a trained model: the step, the loop around it, the guard,
// metrics, the run directory and its checkpoints, and what can be done with a finished run (evaluate, generate, export).
//
// Start with trainer.go (one optimizer step, and the order in which techniques meet in it) and loop.go (a run). The package
// sits above model, optim and schedule and above the data wing; cmd and lab call it.
//
// A run is exact: the same configuration, data and seed give the same bits for any number of threads and after any kill
// and resume. What makes it so: kernels whose sums have a fixed order, a data position that is a pure function of the
// sample counter, and checkpoints that hold everything else.
package train
