// Package model holds the model families, one readable file each: a Config becomes parameters, blocks and a forward pass.
//
// Start with llama.go, a block from top to bottom, beside which stand gpt2.go and anneal.go. What families share: attention.go
// is the branch that reads other tokens, with its patterns (pattern.go), positions (positions.go) and linear form (linear.go);
// decoder.go what stands around the blocks; builder.go how parameters are made: names, roles, first values (init.go and the
// files named after it) and what follows the width (mup.go).
//
// footprint.go says what a model takes before it is made and flops.go what it computes; generate.go samples from one, keeping
// keys and values (cache.go); recompute.go is what is computed again instead of kept, dropout.go and depth.go what training
// leaves out; hf.go gives weights the names of other formats. The package imports nn, attention, precision, autograd, device
// and tensor.
package model
