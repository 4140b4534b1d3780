// Package model holds the model families, one file each: a Config becomes parameters, blocks and a forward pass.
//
// Start with llama.go; gpt2.go, anneal.go, gemma2.go, gemma3.go and qwen3moe.go have the same form. A block (block.go)
// is a list of branches on the residual stream (branch.go). The families share attention.go (the branch that reads
// other tokens), with patterns (pattern.go), positions (positions.go) and the linear form (linear.go); decoder.go,
// everything around the blocks; and builder.go, which declares parameters: names, roles, initial values (init.go and
// the files named after it) and width scaling (mup.go). units.go wraps the blocks for recomputation, and for work
// between them such as gathering weights.
//
// footprint.go measures the memory of a model before it is created, and flops.go counts its operations. generate.go
// samples from a model and caches keys and values (cache.go). recompute.go decides which activations backward
// recomputes instead of keeping; dropout.go and depth.go decide what training drops. hf.go translates weight names to
// other formats. The package imports nn, attention, precision, autograd, device and tensor.
package model
