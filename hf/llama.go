package hf

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// LlamaConfig describes a Llama-style model: RMSNorm, rotate-half RoPE, grouped-query attention, SwiGLU, and no biases
// except those of queries, keys and values. It covers four classes of transformers: LlamaForCausalLM; with QK-norm
// Qwen3ForCausalLM; with biases Qwen2ForCausalLM; with sliding windows in all layers, or heads that do not fill the
// hidden size, MistralForCausalLM.
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
	RopeScaling  RopeScaling
	NormEps      float64
	Tied         bool    // the head is the embedding
	QKNorm       bool    // RMSNorm of each head of q and k, before RoPE; makes it a Qwen3 for transformers
	QKVBias      bool    // biases of q, k and v, but of nothing else; makes it a Qwen2
	Window       int     // sliding_window: a token sees itself and the Window−1 before it; 0 where no layer has one
	WindowLayers []bool  // the layers with that window; nil for all, or for none if Window is 0
	InitStd      float64 // initializer_range; only passed on
	Tokens
}

// Class returns LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM or MistralForCausalLM.
func (c *LlamaConfig) Class() string {
	class, _ := c.architecture()
	return class
}

// architecture returns the class that transformers loads the model with, and its model_type.
func (c *LlamaConfig) architecture() (class, modelType string) {
	switch {
	case c.QKNorm:
		return "Qwen3ForCausalLM", "qwen3"
	case c.QKVBias:
		return "Qwen2ForCausalLM", "qwen2"
	case c.Window != 0 || c.HiddenSize%max(c.Heads, 1) != 0:
		return "MistralForCausalLM", "mistral"
	}
	return "LlamaForCausalLM", "llama"
}

// Validate reports every invalid field, by its name in config.json.
func (c *LlamaConfig) Validate() error {
	k := &checker{}
	k.size("vocab_size", c.VocabSize, maxSize)
	k.size("hidden_size", c.HiddenSize, maxSize)
	k.size("intermediate_size", c.FFNSize, maxSize)
	k.size("num_hidden_layers", c.Layers, maxLayers)
	k.size("num_attention_heads", c.Heads, maxSize)
	k.size("num_key_value_heads", c.KVHeads, maxSize)
	k.size("head_dim", c.HeadDim, maxSize)
	k.size("max_position_embeddings", c.MaxPositions, math.MaxInt32)
	if len(k.errs) > 0 {
		return k.err()
	}
	if c.Heads%c.KVHeads != 0 {
		k.bad("num_key_value_heads = %d does not divide num_attention_heads = %d", c.KVHeads, c.Heads)
	}
	if c.HeadDim%2 != 0 {
		k.bad("head_dim = %d is odd; RoPE turns pairs", c.HeadDim)
	}
	k.positive("rope_theta", c.RopeTheta)
	k.positive("rms_norm_eps", c.NormEps)
	k.windows(c)
	if c.QKVBias && c.QKNorm {
		k.bad("no architecture of transformers has both QK-norm and biases of q, k and v alone")
	}
	c.RopeScaling.check(k, c.HeadDim)
	k.std(c.InitStd)
	k.ids(c.Tokens, c.VocabSize)
	return k.err()
}

func (k *checker) windows(c *LlamaConfig) {
	if c.Window < 0 || c.Window > math.MaxInt32 {
		k.bad("sliding_window = %d is not between 1 and %d", c.Window, math.MaxInt32)
	}
	if c.WindowLayers == nil {
		return
	}
	switch {
	case len(c.WindowLayers) != c.Layers:
		k.bad("layer_types has %d entries, num_hidden_layers = %d", len(c.WindowLayers), c.Layers)
	case c.Window == 0:
		k.bad("layer_types has windows, but sliding_window is not set")
	case !c.QKNorm && !c.QKVBias:
		k.bad("layer_types: transformers supports windows in some layers only with QK-norm (Qwen3) or biases " +
			"(Qwen2); without them, in all layers (Mistral)")
	}
}

// windowed reports whether a layer has the window.
func (c *LlamaConfig) windowed(layer int) bool {
	return c.Window != 0 && (c.WindowLayers == nil || c.WindowLayers[layer])
}

// layers returns which layers have the window.
func (c *LlamaConfig) layers() []bool {
	layers := make([]bool, c.Layers)
	for i := range layers {
		layers[i] = c.windowed(i)
	}
	return layers
}

func (c *LlamaConfig) size() (vocab, positions int) { return c.VocabSize, c.MaxPositions }
func (c *LlamaConfig) tokens() Tokens               { return c.Tokens }
func (c *LlamaConfig) tiedHead() bool               { return c.Tied }
func (c *LlamaConfig) embedding() string            { return "model.embed_tokens.weight" }

func (c *LlamaConfig) derived(name string) bool {
	return strings.HasSuffix(name, ".rotary_emb.inv_freq")
}

// Tensors lists every tensor of the model. Linear weights are [out, in], row-major. With V vocabulary, D hidden, H
// heads, K key/value heads, E head dim, F ffn: embedding and head [V, D], q [H·E, D], k and v [K·E, D], their biases
// [H·E] and [K·E], o [D, H·E], gate and up [F, D], down [D, F], norms [D], QK-norms [E]. A tied model has no lm_head.
func (c *LlamaConfig) Tensors() []Spec {
	d, q, kv := c.HiddenSize, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	specs := []Spec{{c.embedding(), []int{c.VocabSize, d}}}
	for i := range c.Layers {
		add := func(name string, shape ...int) {
			specs = append(specs, Spec{fmt.Sprintf("model.layers.%d.%s.weight", i, name), shape})
		}
		add("input_layernorm", d)
		for _, x := range []struct {
			name string
			rows int
		}{{"q", q}, {"k", kv}, {"v", kv}} {
			add("self_attn."+x.name+"_proj", x.rows, d)
			if c.QKVBias {
				name := fmt.Sprintf("model.layers.%d.self_attn.%s_proj.bias", i, x.name)
				specs = append(specs, Spec{name, []int{x.rows}})
			}
		}
		add("self_attn.o_proj", d, q)
		if c.QKNorm {
			add("self_attn.q_norm", c.HeadDim)
			add("self_attn.k_norm", c.HeadDim)
		}
		add("post_attention_layernorm", d)
		add("mlp.gate_proj", c.FFNSize, d)
		add("mlp.up_proj", c.FFNSize, d)
		add("mlp.down_proj", d, c.FFNSize)
	}
	specs = append(specs, Spec{"model.norm.weight", []int{d}})
	if !c.Tied {
		specs = append(specs, Spec{"lm_head.weight", []int{c.VocabSize, d}})
	}
	return specs
}

// settings gives RoPE in the keys of transformers 4 (rope_theta, rope_scaling) and of 5 (rope_parameters).
func (c *LlamaConfig) settings() map[string]any {
	class, modelType := c.architecture()
	m := map[string]any{
		"architectures": []string{class}, "model_type": modelType,
		"vocab_size": c.VocabSize, "hidden_size": c.HiddenSize, "intermediate_size": c.FFNSize,
		"num_hidden_layers": c.Layers, "num_attention_heads": c.Heads, "num_key_value_heads": c.KVHeads,
		"head_dim": c.HeadDim, "max_position_embeddings": c.MaxPositions,
		"hidden_act": "silu", "rms_norm_eps": float(c.NormEps), "initializer_range": float(c.InitStd),
		"rope_theta": float(c.RopeTheta), "rope_scaling": nil,
		"tie_word_embeddings": c.Tied, "attention_bias": false, "attention_dropout": float(0), "use_cache": true,
	}
	rope := c.RopeScaling.settings()
	if c.RopeScaling.Type != "" {
		m["rope_scaling"] = c.RopeScaling.settings()
	}
	if c.RopeScaling.Type == "longrope" { // where transformers 4 reads it
		m["original_max_position_embeddings"] = c.RopeScaling.OriginalPositions
	}
	rope["rope_theta"] = float(c.RopeTheta)
	m["rope_parameters"] = rope
	var window any
	if c.Window != 0 {
		window = c.Window
	}
	switch modelType {
	case "qwen2", "qwen3":
		types := make([]string, c.Layers)
		for i := range types {
			types[i] = layerType(c.windowed(i))
		}
		// max_window_layers is for flash attention in transformers 4.51, which does not read layer_types.
		m["use_sliding_window"], m["sliding_window"], m["max_window_layers"], m["layer_types"] = c.Window != 0,
			window, max(slices.Index(c.layers(), true), 0), types
	case "mistral":
		m["sliding_window"] = window
		delete(m, "attention_bias")
	default:
		m["mlp_bias"], m["pretraining_tp"] = false, 1
	}
	return m
}

func layerType(windowed bool) string {
	if windowed {
		return "sliding_attention"
	}
	return "full_attention"
}

// parseLlama takes the settings of a Llama or of a model that is like one; missing ones have the defaults of
// transformers.
func (f *fields) parseLlama(modelType string) *LlamaConfig {
	c := &LlamaConfig{MaxPositions: 2048, NormEps: 1e-6, RopeTheta: 10000, InitStd: 0.02}
	c.QKNorm, c.QKVBias = modelType == "qwen3" || modelType == "qwen3_moe", modelType == "qwen2"
	f.class(map[string]string{
		"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "mixtral": "MixtralForCausalLM",
		"olmo2": "Olmo2ForCausalLM", "phi3": "Phi3ForCausalLM", "qwen2": "Qwen2ForCausalLM",
		"qwen3": "Qwen3ForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM",
	}[modelType])
	f.must("vocab_size", &c.VocabSize)
	f.must("hidden_size", &c.HiddenSize)
	f.must("intermediate_size", &c.FFNSize)
	f.must("num_hidden_layers", &c.Layers)
	f.must("num_attention_heads", &c.Heads)
	f.llamaSizes(c, modelType)
	defaults := Tokens{BOS: 1, Pad: -1, EOS: []int{2}}
	if c.QKNorm || c.QKVBias {
		defaults = Tokens{BOS: -1, Pad: -1}
	}
	switch modelType {
	case "mixtral":
		c.NormEps, c.RopeTheta = 1e-5, 1e6
	case "olmo2":
		c.NormEps, defaults = 1e-5, Tokens{BOS: -1, Pad: 1, EOS: []int{50279}}
	case "phi3":
		c.NormEps, defaults = 1e-5, Tokens{BOS: 1, Pad: 32000, EOS: []int{32000}}
	}
	c.Tokens = f.tokens(defaults)
	hasTheta := f.rope(c)
	if c.QKNorm && !hasTheta {
		f.fail("rope_theta is missing, in rope_parameters too")
	}
	f.take("rms_norm_eps", &c.NormEps)
	f.take("initializer_range", &c.InitStd)
	f.take("tie_word_embeddings", &c.Tied)
	only(f, "hidden_act", "silu")
	if !c.QKVBias { // Qwen2 has biases whatever its config says
		only(f, "attention_bias", false)
	}
	only(f, "mlp_bias", false)
	f.windows(c, modelType)
	return c
}

// llamaSizes takes sizes for which only some architectures have sensible defaults; the fixed defaults of others rarely
// fit.
func (f *fields) llamaSizes(c *LlamaConfig, modelType string) {
	if modelType == "mistral" || modelType == "mixtral" {
		f.must("max_position_embeddings", &c.MaxPositions)
		f.must("num_key_value_heads", &c.KVHeads)
	} else {
		if c.QKVBias {
			f.must("num_key_value_heads", &c.KVHeads)
		}
		switch modelType {
		case "qwen2", "qwen3", "qwen3_moe":
			c.MaxPositions = 32768
		case "phi3":
			c.MaxPositions = 4096
		}
		f.take("max_position_embeddings", &c.MaxPositions)
	}
	switch {
	case c.QKNorm:
		f.must("num_key_value_heads", &c.KVHeads)
		f.must("head_dim", &c.HeadDim)
		return
	case slices.Contains([]string{"llama", "olmo2", "phi3"}, modelType) && !f.take("num_key_value_heads", &c.KVHeads):
		c.KVHeads = c.Heads
	}
	if !f.take("head_dim", &c.HeadDim) && c.Heads > 0 {
		c.HeadDim = c.HiddenSize / c.Heads
		if c.HiddenSize%c.Heads != 0 {
			f.fail("num_attention_heads = %d does not divide hidden_size = %d, and head_dim is missing",
				c.Heads, c.HiddenSize)
		}
	}
	if modelType == "llama" && c.Heads > 0 && c.HiddenSize%c.Heads != 0 {
		f.fail("num_attention_heads = %d does not divide hidden_size = %d, which transformers requires of a Llama",
			c.Heads, c.HiddenSize)
	}
}

// windows takes the sliding windows. A Llama has none, a Mistral has them in all layers, and a Qwen in the layers that
// layer_types lists, by default the last ones.
func (f *fields) windows(c *LlamaConfig, modelType string) {
	use, full := modelType == "mistral", 0 // number of first layers without windows
	if modelType == "qwen3_moe" {          // windows are not supported there
		delete(f.raw, "sliding_window")
		delete(f.raw, "max_window_layers")
		modelType = "llama"
	}
	if modelType == "olmo2" { // which has none
		modelType = "llama"
	}
	switch modelType {
	case "llama":
		only(f, "use_sliding_window", false)
	case "qwen2", "qwen3":
		full = 28
		f.take("use_sliding_window", &use)
		f.take("max_window_layers", &full)
	}
	if modelType != "llama" {
		window := 4096
		if modelType == "mixtral" || modelType == "phi3" {
			use = string(f.raw["sliding_window"]) != ""
		}
		if string(f.raw["sliding_window"]) == "null" {
			use = false
		}
		f.take("sliding_window", &window)
		if use && window < 1 {
			f.fail("sliding_window = %d is too small", window)
		}
		if use {
			c.Window = window
		}
	}
	if c.Layers < 1 || c.Layers > maxLayers {
		return // reported elsewhere
	}
	layers := make([]bool, c.Layers)
	for i := range layers {
		layers[i] = c.Window != 0 && i >= full
	}
	f.layerTypes(c, layers, modelType == "qwen2" || modelType == "qwen3")
	switch {
	case !slices.Contains(layers, true):
		c.Window = 0
	case slices.Contains(layers, false):
		c.WindowLayers = layers
	}
}

// layerTypes takes a list of the layers with windows; unless it is free, it must agree with layers.
func (f *fields) layerTypes(c *LlamaConfig, layers []bool, free bool) {
	const name = "layer_types"
	var types []string
	if !f.take(name, &types) {
		return
	}
	if len(types) != len(layers) {
		f.fail("%s has %d entries, num_hidden_layers = %d", name, len(types), len(layers))
		return
	}
	for i, t := range types {
		windowed := t == layerType(true)
		switch {
		case !windowed && t != layerType(false):
			f.fail("%s has %.60q; only full_attention and sliding_attention are supported", name, t)
		case windowed && c.Window == 0:
			f.fail("%s has sliding_attention, but no sliding_window is in use", name)
		case windowed != layers[i] && !free:
			f.fail("%s has %s, but sliding_window = %d holds in all layers of this architecture", name, t, c.Window)
		default:
			layers[i] = windowed
			continue
		}
		return
	}
}
