// Package train makes optimizer steps. It holds the trainer and everything that changes a step: optimizer groups, the
// guard, ramps, averages, precision, replays and domain weights. It also evaluates a model in training.
//
// Start with trainer.go (the step, and the order in which techniques apply), then footprint.go (its memory),
// restore.go and tensors.go (its state as values) and event.go (the figures of a step). A trainer is made from a
// configuration and a device; it knows neither runs nor checkpoints. The package may import config, model and the
// packages below them; its data comes from a dataset.Source.
package train
