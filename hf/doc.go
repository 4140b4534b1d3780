// Package hf reads and writes Hugging Face model directories: config.json, safetensors weights and tokenizer files, in
// the form that the transformers library loads. It supports GPT2LMHeadModel and, with the suffix ForCausalLM, Llama,
// Mistral, Mixtral, Qwen2, Qwen3, Qwen3Moe, Olmo2, Phi3, Gemma2 and Gemma3.
//
// It handles names, shapes and settings, and does not know how this module stores or runs a model: callers pass and
// receive each tensor under its Hugging Face name. A setting that it cannot represent is an error that names the
// field.
//
// It may import safetensors and internal, and nothing else of this module. Start reading at Config in config.go, then
// llama.go and gpt2.go, one file for each config; export.go writes, import.go reads.
package hf
