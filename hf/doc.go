// Package hf reads and writes model directories in the layout of the Hugging Face hub: config.json, safetensors weights
// and tokenizer files that the transformers library loads: GPT2LMHeadModel, LlamaForCausalLM, Qwen3ForCausalLM and
// MistralForCausalLM.
//
// It knows names, shapes and settings, and nothing of how this module stores or runs a model: the caller hands over each
// tensor under its Hugging Face name, and gets it back under that name. What it cannot represent it refuses, by the name
// of the field.
//
// It may import safetensors and internal, and nothing else of this module. Start reading at Config in config.go, then
// llama.go and gpt2.go, one file for each config; export.go is the way out, import.go the way in.
package hf
