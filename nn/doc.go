// Package nn holds what layers are made of: parameters with their role and initialisation, and position tables.
// Start with Param. The package imports autograd and tensor.
package nn
