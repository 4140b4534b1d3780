package hf

import (
	"errors"
	"fmt"
	"math"
)

// LlamaConfig describes a Llama-style model: RMSNorm, rotate-half RoPE, grouped-query attention, SwiGLU, no biases.
type LlamaConfig struct {
	VocabSize    int
	HiddenSize   int // width of the residual stream
	FFNSize      int // intermediate_size: width of the SwiGLU gate
	Layers       int
	Heads        int
	KVHeads      int // Heads is a multiple of it
	HeadDim      int // even
	MaxPositions int // context length
	RopeTheta    float64
	NormEps      float64
	Tied         bool    // the head is the embedding
	QKNorm       bool    // RMSNorm of each head of q and k, before RoPE; makes it a Qwen3 for transformers
	InitStd      float64 // initializer_range; only told to others
	BOS, Pad     int     // token ids, -1 for none
	EOS          []int   // token ids that end a text
}

// Limits on what a config.json may ask for. They keep all products of two sizes, and lists of names, in bounds.
const (
	maxSize   = 1 << 24
	maxLayers = 10_000
)

// Validate reports every field that makes no sense, by its name in config.json.
func (c LlamaConfig) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, f := range []struct {
		name       string
		value, max int
	}{
		{"vocab_size", c.VocabSize, maxSize}, {"hidden_size", c.HiddenSize, maxSize},
		{"intermediate_size", c.FFNSize, maxSize}, {"num_hidden_layers", c.Layers, maxLayers},
		{"num_attention_heads", c.Heads, maxSize}, {"num_key_value_heads", c.KVHeads, maxSize},
		{"head_dim", c.HeadDim, maxSize}, {"max_position_embeddings", c.MaxPositions, math.MaxInt32},
	} {
		if f.value < 1 || f.value > f.max {
			bad("%s = %d is not between 1 and %d", f.name, f.value, f.max)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if c.Heads%c.KVHeads != 0 {
		bad("num_key_value_heads = %d does not divide num_attention_heads = %d", c.KVHeads, c.Heads)
	}
	if c.HeadDim%2 != 0 {
		bad("head_dim = %d is odd; RoPE turns pairs", c.HeadDim)
	}
	if !c.QKNorm && c.HiddenSize%c.Heads != 0 {
		bad("num_attention_heads = %d does not divide hidden_size = %d, which transformers demands of a Llama", c.Heads, c.HiddenSize)
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"rope_theta", c.RopeTheta}, {"rms_norm_eps", c.NormEps}} {
		if !(f.value > 0) || math.IsInf(f.value, 0) {
			bad("%s = %v is not a positive number", f.name, f.value)
		}
	}
	if !(c.InitStd >= 0 && c.InitStd <= 1) {
		bad("initializer_range = %v is not between 0 and 1", c.InitStd)
	}
	for _, id := range append([]int{c.BOS, c.Pad}, c.EOS...) {
		if id < -1 || id >= c.VocabSize {
			bad("bos_token_id, eos_token_id or pad_token_id is %d, outside of the vocabulary of %d", id, c.VocabSize)
		}
	}
	return errors.Join(errs...)
}

// architecture is the class that transformers loads the model with, and modelType its model_type.
func (c LlamaConfig) architecture() (class, modelType string) {
	if c.QKNorm {
		return "Qwen3ForCausalLM", "qwen3"
	}
	return "LlamaForCausalLM", "llama"
}
