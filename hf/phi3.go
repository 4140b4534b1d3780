package hf

import (
	"encoding/json"
	"strings"
)

// Phi3Config describes a Phi-3 (Abdin et al. 2024, arXiv 2404.14219). It computes the same as a Llama, but in its
// files queries, keys and values are one matrix, and so are gate and up.
type Phi3Config struct{ LlamaConfig }

// Class returns Phi3ForCausalLM.
func (c *Phi3Config) Class() string { return "Phi3ForCausalLM" }

// Validate reports every invalid field, by its name in config.json.
func (c *Phi3Config) Validate() error {
	k := &checker{}
	if t := c.RopeScaling.Type; t != "" && t != "longrope" {
		k.bad("rope_scaling.rope_type = %s: transformers has only longrope for a Phi-3", t)
	}
	if c.RopeScaling.Type != "" && c.HeadDim*c.Heads != c.HiddenSize {
		k.bad("head_dim = %d times num_attention_heads = %d is not hidden_size = %d, which transformers requires of a "+
			"Phi-3 with longrope", c.HeadDim, c.Heads, c.HiddenSize)
	}
	if err := c.LlamaConfig.Validate(); err != nil {
		k.errs = append(k.errs, err)
	}
	return k.err()
}

// Tensors lists every tensor of the model: those of a Llama, with qkv_proj [(H+2K)·E, D] and gate_up_proj [2F, D].
func (c *Phi3Config) Tensors() (specs []Spec) {
	for _, s := range c.LlamaConfig.Tensors() {
		layer, name, _ := strings.Cut(s.Name, "_proj.")
		switch {
		case name == "" || strings.HasSuffix(layer, ".o") || strings.HasSuffix(layer, ".down"):
			specs = append(specs, s)
		case strings.HasSuffix(layer, ".q"):
			rows := (c.Heads + 2*c.KVHeads) * c.HeadDim
			specs = append(specs, Spec{layer[:len(layer)-1] + "qkv_proj.weight", []int{rows, c.HiddenSize}})
		case strings.HasSuffix(layer, ".gate"):
			specs = append(specs, Spec{layer + "_up_proj.weight", []int{2 * c.FFNSize, c.HiddenSize}})
		}
	}
	return specs
}

func (c *Phi3Config) settings() map[string]any {
	m := c.LlamaConfig.settings()
	for _, name := range []string{"attention_bias", "mlp_bias", "pretraining_tp"} {
		delete(m, name)
	}
	m["architectures"], m["model_type"], m["sliding_window"] = []string{c.Class()}, "phi3", nil
	if c.Window != 0 {
		m["sliding_window"] = c.Window
	}
	m["resid_pdrop"], m["embd_pdrop"] = float(0), float(0)
	if c.RopeScaling.Type == "" {
		m["original_max_position_embeddings"] = c.MaxPositions
	}
	if c.usualLongRope() { // transformers 4 refuses more than these; 5 takes them instead of rope_parameters
		m["rope_scaling"] = map[string]any{
			"type": "longrope", "short_factor": floats(c.RopeScaling.ShortFactor),
			"long_factor": floats(c.RopeScaling.LongFactor),
		}
	}
	return m
}

// usualLongRope reports whether every field of a longrope follows from its factors of frequencies and the contexts.
func (c *Phi3Config) usualLongRope() bool {
	s := c.RopeScaling
	return s.Type == "longrope" && s.Factor == float64(c.MaxPositions)/float64(s.OriginalPositions) &&
		s.AttentionFactor == longRopeAttention(s.Factor, s.OriginalPositions)
}

// phi3Harmless lists settings of training, and the place of Phi-3's code before transformers had it.
var phi3Harmless = []string{"resid_pdrop", "embd_pdrop", "auto_map", "original_max_position_embeddings"}

// parsePhi3 takes the settings of a Phi-3. The original context is outside of rope_scaling, and longrope was once
// called su or yarn.
func (f *fields) parsePhi3() *Phi3Config {
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		var inner map[string]json.RawMessage
		if json.Unmarshal(f.raw[name], &inner) != nil || inner == nil {
			continue
		}
		for _, key := range []string{"type", "rope_type"} {
			if t := string(inner[key]); t == `"su"` || t == `"yarn"` {
				inner[key] = json.RawMessage(`"longrope"`)
			}
		}
		original := f.raw["original_max_position_embeddings"]
		_, scaled := inner["long_factor"]
		if scaled && inner["original_max_position_embeddings"] == nil && original != nil {
			inner["original_max_position_embeddings"] = original
		}
		text, err := json.Marshal(inner)
		if err != nil {
			f.fail("%s: %w", name, err)
		}
		f.raw[name] = text
	}
	return &Phi3Config{*f.parseLlama("phi3")}
}
