// Package conformance holds every kernel of a device against float64 references: plain loops that follow the formulas in
// device.Device. Run is the whole suite; a device's tests call it. The references are exported, so that the tests of single
// kernels stand on the same ground.
//
// Start with conformance.go (what is compared and how close it must be); the reference_*.go files are the formulas.
// Imports: tensor, device, and the test libraries.
package conformance
