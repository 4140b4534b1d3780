// Package conformance compares every kernel of a device with float64 references: plain loops that follow the formulas
// in device.Device. Run is the whole suite; a device's tests call it. The references are exported for the tests of
// single kernels.
//
// Start with conformance.go (what is compared and how close it must be); the reference_*.go files are the formulas.
// Imports: tensor, device, and the test libraries.
package conformance
