// Package hf reads and writes model directories in the layout of the Hugging Face hub: config.json, safetensors weights
// and tokenizer files that the transformers library loads as LlamaForCausalLM or, with QK-norm, as Qwen3ForCausalLM.
//
// It knows names, shapes and settings, and nothing of how this module stores or runs a model: the caller hands over each
// tensor under its Hugging Face name, and gets it back under that name. What it cannot represent it refuses, by the name
// of the field.
//
// It may import safetensors and nothing else of this module. Start reading at LlamaConfig in config.go and
// LlamaTensors in names.go; then export.go for the way out and import.go for the way in.
package hf
