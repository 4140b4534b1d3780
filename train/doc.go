// Package train is one optimizer step and what changes it: the trainer, optimizer groups, the guard, ramps, averages,
// precision, replays and domain weights; and the evaluation of a model in training.
//
// Start with trainer.go (the step, and the order in which techniques apply), then footprint.go (its memory), restore.go
// and tensors.go (its state as values) and event.go (what is known of a step). A trainer is made from a configuration
// and a device; it knows neither runs nor checkpoints. The package may import config, model and what stands below them;
// its data comes from a dataset.Source.
package train
