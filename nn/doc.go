// Package nn holds what layers are made of: parameters with their role and initialisation, and positions, which are rotary
// tables with their scalings and the slopes of ALiBi. Start with Param. The package imports autograd and tensor.
package nn
