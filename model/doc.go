// Package model holds the model families, one readable file each: a Config becomes parameters, blocks and a forward pass.
//
// Start with llama.go; footprint.go says what a model takes before it is made, generate.go samples from one;
// init.go and the files named after it say how weights start, mup.go what follows the width, recompute.go what is computed
// again instead of kept, dropout.go and depth.go what training leaves out. The package imports nn, precision, autograd,
// device and tensor.
package model
