// Package model holds the model families, one readable file each: a Config becomes parameters, blocks and a forward pass.
//
// Start with llama.go. The package imports nn, autograd, device and tensor, and the formats it exports to.
package model
