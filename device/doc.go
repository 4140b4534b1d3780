// Package device defines the computations of training: Device is the set of fused kernels, one method each. Layers
// and the tape access tensor memory only through it, so that other devices can replace the CPU. Memory transfers
// numbers between host and device.
//
// device/cpu implements it with generated assembly; device/conformance tests every implementation against float64.
// The package imports tensor only.
package device
