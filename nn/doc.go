// Package nn holds the building blocks of layers: parameters with their role and initialisation, rotary position tables
// with their scalings, and the slopes of ALiBi. Start with Param. The package imports autograd, device and tensor.
package nn
