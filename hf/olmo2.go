package hf

import "strings"

// Olmo2Config describes an OLMo 2: a Llama with norms after its branches instead of before them, and with QK-norm over
// all heads together. Every query head has its own keys.
type Olmo2Config struct{ LlamaConfig }

// Class returns Olmo2ForCausalLM.
func (c *Olmo2Config) Class() string { return "Olmo2ForCausalLM" }

// Validate reports every invalid field, by its name in config.json.
func (c *Olmo2Config) Validate() error {
	k := &checker{}
	if c.KVHeads != c.Heads {
		k.bad("num_key_value_heads = %d is not num_attention_heads = %d: OLMo 2 with fewer keys is not supported",
			c.KVHeads, c.Heads)
	}
	if err := c.LlamaConfig.Validate(); err != nil {
		k.errs = append(k.errs, err)
	}
	return k.err()
}

// Tensors lists every tensor of the model: those of a Llama, with norms [D] after the branches, and the gains [H·E] of
// queries and of keys.
func (c *Olmo2Config) Tensors() (specs []Spec) {
	width := []int{c.Heads * c.HeadDim}
	for _, s := range c.LlamaConfig.Tensors() {
		if layer, is := strings.CutSuffix(s.Name, "input_layernorm.weight"); is {
			specs = append(specs, Spec{layer + "post_feedforward_layernorm.weight", s.Shape},
				Spec{layer + "self_attn.q_norm.weight", width}, Spec{layer + "self_attn.k_norm.weight", width})
			continue
		}
		specs = append(specs, s)
	}
	return specs
}

func (c *Olmo2Config) settings() map[string]any {
	m := c.LlamaConfig.settings()
	for _, name := range []string{"mlp_bias", "pretraining_tp"} {
		delete(m, name)
	}
	m["architectures"], m["model_type"] = []string{c.Class()}, "olmo2"
	return m
}

// parseOlmo2 takes the settings of an OLMo 2.
func (f *fields) parseOlmo2() *Olmo2Config { return &Olmo2Config{*f.parseLlama("olmo2")} }
