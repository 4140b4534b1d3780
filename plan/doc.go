// Package plan predicts what a run needs before it starts: its memory, part by part, and its operations.
//
// Start with For. The figures come from the step's own code (train.MeasureRun) and from what the device says about
// itself (device.Properties), so dry runs, forecasts and the refusal of a run that does not fit agree. The package
// imports config, train, model and device, but no kernels.
package plan
