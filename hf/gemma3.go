package hf

import (
	"reflect"
	"slices"
)

// Gemma3Config describes the text model of a Gemma 3: norms before and after each branch, whose gains are stored
// without their 1, QK-norm, GeGLU, a scaled embedding, and layers with windows that have their own base of RoPE.
// RopeScaling applies to the other layers.
type Gemma3Config struct {
	LlamaConfig
	LocalTheta   float64 // rope_local_base_freq: the base of RoPE in layers with a window
	ScoreDim     int     // query_pre_attn_scalar: scores are divided by its square root
	LogitSoftcap float64 // final_logit_softcapping; 0 for none
}

// Class returns Gemma3ForCausalLM.
func (c *Gemma3Config) Class() string { return "Gemma3ForCausalLM" }

// Validate reports every invalid field, by its name in config.json.
func (c *Gemma3Config) Validate() error {
	k := &checker{}
	k.positive("rope_local_base_freq", c.LocalTheta)
	k.size("query_pre_attn_scalar", c.ScoreDim, maxSize)
	k.gemma(&c.LlamaConfig, c.LogitSoftcap)
	return k.err()
}

// gemma checks the fields that all Gemmas share.
func (k *checker) gemma(c *LlamaConfig, logitSoftcap float64) {
	if logitSoftcap != 0 {
		k.positive("final_logit_softcapping", logitSoftcap)
	}
	if err := c.Validate(); err != nil {
		k.errs = append(k.errs, err)
	} else if c.HiddenSize%c.Heads != 0 {
		k.bad("num_attention_heads = %d does not divide hidden_size = %d, which transformers requires of a Gemma",
			c.Heads, c.HiddenSize)
	}
}

// Tensors lists every tensor of the model: those of a Qwen3, and two more norms [D] per layer.
func (c *Gemma3Config) Tensors() []Spec { return sandwiched(c.LlamaConfig.Tensors()) }

// settings gives the bases of RoPE in the keys of transformers 4 (rope_theta, rope_local_base_freq) and of 5
// (rope_parameters). It gives the windows as a list and, if they are equivalent to one, as the period that 4.51 reads.
func (c *Gemma3Config) settings() map[string]any {
	m := c.LlamaConfig.settings()
	for _, name := range []string{"hidden_act", "use_sliding_window", "max_window_layers"} {
		delete(m, name)
	}
	m["architectures"], m["model_type"], m["hidden_activation"] = []string{c.Class()}, "gemma3_text", geluTanh
	m["query_pre_attn_scalar"], m["rope_local_base_freq"] = c.ScoreDim, float(c.LocalTheta)
	m["attn_logit_softcapping"], m["final_logit_softcapping"] = nil, orNull(c.LogitSoftcap)
	full := c.RopeScaling.settings()
	full["rope_theta"] = float(c.RopeTheta)
	m["rope_parameters"] = map[string]any{
		layerType(false): full,
		layerType(true):  map[string]any{"rope_type": "default", "rope_theta": float(c.LocalTheta)},
	}
	if c.Window == 0 {
		m["sliding_window"] = defaultWindow // of no layer
	}
	if period := c.period(); period > 0 {
		m["sliding_window_pattern"] = period
	}
	return m
}

// period returns the n for which all layers except every n-th have the window, or 0.
func (c *Gemma3Config) period() int {
	for period := 1; period <= c.Layers+1; period++ {
		if slices.Equal(c.layers(), everyNth(c.Layers, period)) {
			return period
		}
	}
	return 0
}

const (
	geluTanh      = "gelu_pytorch_tanh"
	defaultWindow = 4096
)

// everyNth returns windows in all of n layers except every period-th.
func everyNth(n, period int) []bool {
	layers := make([]bool, n)
	for i := range layers {
		layers[i] = (i+1)%period != 0
	}
	return layers
}

// parseGemma3 takes the settings of a Gemma 3; missing ones have the defaults of transformers.
func (f *fields) parseGemma3() *Gemma3Config {
	const localTheta = 10000
	c := &Gemma3Config{LocalTheta: localTheta, ScoreDim: 256, LlamaConfig: LlamaConfig{
		MaxPositions: 131072, NormEps: 1e-6, RopeTheta: 1e6, InitStd: 0.02, QKNorm: true, Tied: true,
	}}
	f.class("Gemma3ForCausalLM")
	f.gemmaSizes(&c.LlamaConfig)
	f.gemmaRope(c)
	f.take("query_pre_attn_scalar", &c.ScoreDim)
	f.take("final_logit_softcapping", &c.LogitSoftcap)
	only(f, "hidden_activation", geluTanh)
	if f.gemmaWindows(&c.LlamaConfig, 6); c.Window == 0 {
		c.LocalTheta = localTheta // of no layer
	}
	return c
}

// gemmaSizes takes the sizes that Gemmas share with a Llama.
func (f *fields) gemmaSizes(c *LlamaConfig) {
	f.must("vocab_size", &c.VocabSize)
	f.must("hidden_size", &c.HiddenSize)
	f.must("intermediate_size", &c.FFNSize)
	f.must("num_hidden_layers", &c.Layers)
	f.must("num_attention_heads", &c.Heads)
	f.must("num_key_value_heads", &c.KVHeads)
	f.must("head_dim", &c.HeadDim)
	f.take("max_position_embeddings", &c.MaxPositions)
	f.take("rms_norm_eps", &c.NormEps)
	f.take("initializer_range", &c.InitStd)
	f.take("tie_word_embeddings", &c.Tied)
	c.Tokens = f.tokens(Tokens{BOS: 2, Pad: 0, EOS: []int{1}})
}

// gemmaRope takes the bases and the scaling from where transformers 5 or 4 puts them. If both say something they must
// say the same.
func (f *fields) gemmaRope(c *Gemma3Config) {
	inner, full, local := &fields{}, &fields{}, &fields{}
	nested := f.take("rope_parameters", &inner.raw)
	given := f.take("rope_theta", &c.RopeTheta)
	givenLocal := f.take("rope_local_base_freq", &c.LocalTheta)
	outer := &fields{}
	scaled := f.take("rope_scaling", &outer.raw)
	if scaled {
		c.RopeScaling = outer.scaling(c.MaxPositions)
		outer.rest(nil)
	}
	if nested && inner.take(layerType(false), &full.raw) {
		s, theta := full.scaling(c.MaxPositions), c.RopeTheta
		differs := scaled && !reflect.DeepEqual(s, c.RopeScaling)
		if full.take("rope_theta", &theta); given && theta != c.RopeTheta || differs {
			full.fail("%s is not what rope_theta and rope_scaling say", layerType(false))
		}
		c.RopeTheta, c.RopeScaling = theta, s
	}
	if nested && inner.take(layerType(true), &local.raw) {
		s, theta := local.scaling(c.MaxPositions), c.LocalTheta
		if local.take("rope_theta", &theta); givenLocal && theta != c.LocalTheta || s.Type != "" {
			local.fail("%s is not what rope_local_base_freq says, without a scaling", layerType(true))
		}
		c.LocalTheta = theta
	}
	for _, part := range []*fields{inner, full, local} {
		part.rest(nil)
		for _, err := range part.errs {
			f.fail("rope_parameters: %w", err)
		}
	}
	for _, err := range outer.errs {
		f.fail("rope_scaling: %w", err)
	}
	f.originalOutside(c.RopeScaling)
}

// gemmaWindows takes the windows. By default, all layers except every period-th have one.
func (f *fields) gemmaWindows(c *LlamaConfig, period int) {
	c.Window = defaultWindow
	f.take("sliding_window", &c.Window)
	for _, name := range []string{"_sliding_window_pattern", "sliding_window_pattern"} {
		f.take(name, &period)
	}
	if period < 1 {
		f.fail("sliding_window_pattern = %d must be at least 1", period)
		return
	}
	if c.Layers < 1 || c.Layers > maxLayers {
		return // reported elsewhere
	}
	layers := everyNth(c.Layers, period)
	f.layerTypes(c, layers, true)
	switch {
	case !slices.Contains(layers, true):
		c.Window = 0
	case slices.Contains(layers, false):
		c.WindowLayers = layers
	}
}
