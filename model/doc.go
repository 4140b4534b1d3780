// Package model holds the model families, one readable file each: a Config becomes parameters, blocks and a forward pass.
//
// Start with llama.go; footprint.go says what a model takes before it is made, generate.go samples from one. The package
// imports nn, precision, autograd, device and tensor.
package model
