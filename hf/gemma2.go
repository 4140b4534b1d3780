package hf

import "strings"

// Gemma2Config describes a Gemma 2: a Llama with norms before and after each branch, whose gains are stored without
// their 1, GeGLU, a scaled embedding, soft-caps, and windows in every second layer.
type Gemma2Config struct {
	LlamaConfig
	ScoreDim     int     // query_pre_attn_scalar: scores are divided by its square root
	ScoreSoftcap float64 // attn_logit_softcapping; 0 for none
	LogitSoftcap float64 // final_logit_softcapping; 0 for none
}

// Class returns Gemma2ForCausalLM.
func (c *Gemma2Config) Class() string { return "Gemma2ForCausalLM" }

// mixed returns the Llama that c extends, in a form that allows windows in any layers.
func (c *Gemma2Config) mixed() *LlamaConfig {
	l := c.LlamaConfig
	l.QKNorm = true // makes it a Qwen3, which changes nothing else here
	return &l
}

// Validate reports every invalid field, by its name in config.json.
func (c *Gemma2Config) Validate() error {
	k := &checker{}
	k.size("query_pre_attn_scalar", c.ScoreDim, maxSize)
	if c.ScoreSoftcap != 0 {
		k.positive("attn_logit_softcapping", c.ScoreSoftcap)
	}
	k.gemma(c.mixed(), c.LogitSoftcap)
	return k.err()
}

// Tensors lists every tensor of the model: those of a Llama, and two more norms [D] per layer.
func (c *Gemma2Config) Tensors() []Spec { return sandwiched(c.LlamaConfig.Tensors()) }

// sandwiched adds to the tensors of a Llama the norms around its feed-forward layers.
func sandwiched(llama []Spec) (specs []Spec) {
	for _, s := range llama {
		specs = append(specs, s)
		if layer, is := strings.CutSuffix(s.Name, "post_attention_layernorm.weight"); is {
			for _, norm := range []string{"pre", "post"} {
				specs = append(specs, Spec{layer + norm + "_feedforward_layernorm.weight", s.Shape})
			}
		}
	}
	return specs
}

// settings gives the windows as a list, which transformers reads from 4.53 on.
func (c *Gemma2Config) settings() map[string]any {
	m := c.mixed().settings()
	for _, name := range []string{"hidden_act", "use_sliding_window", "max_window_layers"} {
		delete(m, name)
	}
	m["architectures"], m["model_type"], m["hidden_activation"] = []string{c.Class()}, "gemma2", geluTanh
	m["query_pre_attn_scalar"] = c.ScoreDim
	m["attn_logit_softcapping"], m["final_logit_softcapping"] = orNull(c.ScoreSoftcap), orNull(c.LogitSoftcap)
	if c.Window == 0 {
		m["sliding_window"] = max(defaultWindow, c.MaxPositions) // of no layer, and without effect in older versions
	}
	return m
}

// orNull returns a number, or null for 0, which stands for none.
func orNull(x float64) any {
	if x == 0 {
		return nil
	}
	return float(x)
}

// parseGemma2 takes the settings of a Gemma 2; missing ones have the defaults of transformers.
func (f *fields) parseGemma2() *Gemma2Config {
	c := &Gemma2Config{ScoreDim: 256, ScoreSoftcap: 50, LogitSoftcap: 30, LlamaConfig: LlamaConfig{
		MaxPositions: 8192, NormEps: 1e-6, RopeTheta: 10000, InitStd: 0.02, Tied: true,
	}}
	f.class("Gemma2ForCausalLM")
	f.gemmaSizes(&c.LlamaConfig)
	f.rope(&c.LlamaConfig)
	f.take("query_pre_attn_scalar", &c.ScoreDim)
	f.orNone("attn_logit_softcapping", &c.ScoreSoftcap)
	f.orNone("final_logit_softcapping", &c.LogitSoftcap)
	only(f, "hidden_act", geluTanh)
	only(f, "hidden_activation", geluTanh)
	only(f, "attention_bias", false)
	f.gemmaWindows(&c.LlamaConfig, 2)
	return c
}

// orNone takes a number for which null means none.
func (f *fields) orNone(name string, x *float64) {
	if _, given := f.raw[name]; given {
		*x = 0
	}
	f.take(name, x)
}
