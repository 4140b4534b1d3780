// Package device says what a machine must compute for training: Device is the set of fused kernels, one method each.
// Layers and the tape call nothing else to touch tensor memory, so that another device can stand beside the CPU's; Memory is where
// the host hands it numbers and takes them back.
//
// device/cpu implements it with generated assembly; device/conformance holds every implementation against float64.
// The package imports tensor only.
package device
