package hf

import (
	"fmt"
	"math"
	"regexp"
)

// GPT2Config describes a GPT-2: LayerNorm, learned positions, biases, and a feed-forward network of two matrices
// around GELU's tanh form. Its heads fill the hidden size.
type GPT2Config struct {
	VocabSize    int
	HiddenSize   int // n_embd
	FFNSize      int // n_inner
	Layers       int // n_layer
	Heads        int // n_head; divides HiddenSize
	MaxPositions int // n_positions: rows of the table of positions
	NormEps      float64
	Tied         bool // the head is the embedding
	InitStd      float64
	Tokens
}

// Class returns GPT2LMHeadModel.
func (c *GPT2Config) Class() string { return "GPT2LMHeadModel" }

// Validate reports every invalid field, by its name in config.json.
func (c *GPT2Config) Validate() error {
	k := &checker{}
	k.size("vocab_size", c.VocabSize, maxSize)
	k.size("n_embd", c.HiddenSize, maxSize)
	k.size("n_inner", c.FFNSize, maxSize)
	k.size("n_layer", c.Layers, maxLayers)
	k.size("n_head", c.Heads, maxSize)
	k.size("n_positions", c.MaxPositions, math.MaxInt32)
	if len(k.errs) > 0 {
		return k.err()
	}
	if c.HiddenSize%c.Heads != 0 {
		k.bad("n_head = %d does not divide n_embd = %d", c.Heads, c.HiddenSize)
	}
	k.positive("layer_norm_epsilon", c.NormEps)
	k.std(c.InitStd)
	k.ids(c.Tokens, c.VocabSize)
	return k.err()
}

func (c *GPT2Config) size() (vocab, positions int) { return c.VocabSize, c.MaxPositions }
func (c *GPT2Config) tokens() Tokens               { return c.Tokens }
func (c *GPT2Config) tiedHead() bool               { return c.Tied }
func (c *GPT2Config) embedding() string            { return gpt2Prefix + "wte.weight" }

// gpt2Prefix begins the names of all tensors except the head's. OpenAI's own files lack it.
const gpt2Prefix = "transformer."

var gpt2Mask = regexp.MustCompile(`^(transformer\.)?h\.\d+\.attn\.(bias|masked_bias)$`)

func (c *GPT2Config) derived(name string) bool { return gpt2Mask.MatchString(name) }

// Tensors lists every tensor of the model. Matrices are [in, out], row-major, and have a bias [out]. With V
// vocabulary, T positions, D hidden, F ffn: wte and lm_head [V, D], wpe [T, D], attn.c_attn [D, 3D] (q, k and v side
// by side), attn.c_proj [D, D], mlp.c_fc [D, F], mlp.c_proj [F, D], norms [D]. A tied model has no lm_head.
func (c *GPT2Config) Tensors() []Spec {
	d := c.HiddenSize
	specs := []Spec{{c.embedding(), []int{c.VocabSize, d}}, {gpt2Prefix + "wpe.weight", []int{c.MaxPositions, d}}}
	norm := func(name string) {
		specs = append(specs, Spec{name + ".weight", []int{d}}, Spec{name + ".bias", []int{d}})
	}
	for i := range c.Layers {
		at := fmt.Sprintf("%sh.%d.", gpt2Prefix, i)
		matrix := func(name string, in, out int) {
			specs = append(specs, Spec{at + name + ".weight", []int{in, out}}, Spec{at + name + ".bias", []int{out}})
		}
		norm(at + "ln_1")
		matrix("attn.c_attn", d, 3*d)
		matrix("attn.c_proj", d, d)
		norm(at + "ln_2")
		matrix("mlp.c_fc", d, c.FFNSize)
		matrix("mlp.c_proj", c.FFNSize, d)
	}
	norm(gpt2Prefix + "ln_f")
	if !c.Tied {
		specs = append(specs, Spec{"lm_head.weight", []int{c.VocabSize, d}})
	}
	return specs
}

func (c *GPT2Config) settings() map[string]any {
	return map[string]any{
		"architectures": []string{c.Class()}, "model_type": "gpt2",
		"vocab_size": c.VocabSize, "n_positions": c.MaxPositions, "n_ctx": c.MaxPositions, "n_embd": c.HiddenSize,
		"n_layer": c.Layers, "n_head": c.Heads, "n_inner": c.FFNSize, "activation_function": "gelu_new",
		"layer_norm_epsilon": float(c.NormEps), "initializer_range": float(c.InitStd), "tie_word_embeddings": c.Tied,
		"resid_pdrop": float(0), "embd_pdrop": float(0), "attn_pdrop": float(0),
		"scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false, "reorder_and_upcast_attn": false,
		"add_cross_attention": false, "use_cache": true,
	}
}

// gpt2Harmless lists settings of training, or of heads other than the language model's.
var gpt2Harmless = []string{
	"resid_pdrop", "embd_pdrop", "attn_pdrop", "n_special", "predict_special_tokens", "summary_type",
	"summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
}

func (f *fields) parseGPT2() *GPT2Config {
	c := &GPT2Config{NormEps: 1e-5, InitStd: 0.02, Tied: true}
	f.class(c.Class())
	f.must("vocab_size", &c.VocabSize)
	f.must("n_embd", &c.HiddenSize)
	f.must("n_layer", &c.Layers)
	f.must("n_head", &c.Heads)
	f.must("n_positions", &c.MaxPositions)
	only(f, "n_ctx", c.MaxPositions)
	if !f.take("n_inner", &c.FFNSize) {
		c.FFNSize = 4 * c.HiddenSize
	}
	f.take("layer_norm_epsilon", &c.NormEps)
	f.take("initializer_range", &c.InitStd)
	f.take("tie_word_embeddings", &c.Tied)
	c.Tokens = f.tokens(Tokens{BOS: 50256, Pad: -1, EOS: []int{50256}})
	act := "gelu_new"
	// two names of one function
	if f.take("activation_function", &act) && act != "gelu_new" && act != "gelu_pytorch_tanh" {
		f.fail("activation_function = %.60s is not supported, only gelu_new and gelu_pytorch_tanh, which is the same",
			act)
	}
	only(f, "scale_attn_weights", true)
	only(f, "scale_attn_by_inverse_layer_idx", false)
	only(f, "reorder_and_upcast_attn", false)
	only(f, "add_cross_attention", false)
	return c
}
