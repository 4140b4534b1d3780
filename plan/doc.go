// Package plan predicts what a run needs before it starts: its memory, part by part, and its operations (plan.go), the
// memory of its ranks at each stage of ZeRO (zero.go) and on each stage of a pipeline (share.go), the bytes that they
// send along each axis of a mesh (traffic.go), and the data that it will read (foresee.go).
//
// Start with Foresee, which commands print, and For. The figures come from the step's own code (train.MeasureRun) and
// from the properties of the device (device.Properties), so dry runs, forecasts and the refusal of a run that does not
// fit agree. The package imports prepare, train and packages below them, but no kernels.
package plan

//go:generate go run ./gen
