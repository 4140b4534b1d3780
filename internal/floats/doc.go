// Package floats stores float32 values as the bytes of file formats: F32, BF16 and F16, little-endian. It serves
// safetensors and gguf, and imports nothing of this module.
package floats
