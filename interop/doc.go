// Package interop converts models between this program and package hf, which knows the formats of Hugging Face: the
// shape (config.go, positions.go, windows.go), the special tokens (tokens.go) and the weights (weights.go). From there
// it turns them into files for llama.cpp, which package gguf writes: the architecture (gguf.go), the tensors
// (gguftensors.go) and the tokenizer (gguftokens.go).
//
// Start with ToHF and FromHF (config.go), and ToGGUF. The package knows neither runs nor checkpoints: package run
// makes a run from a model that was read here, and package use exports one. It may import config, model, hf, gguf and
// packages below them.
package interop
