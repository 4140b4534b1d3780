package hf

import (
	"fmt"
	"strings"
)

// MixtralConfig describes a Mixtral: a Mistral whose feed-forward layers are routed experts of FFNSize, whose weights
// are a softmax over those that a token goes through. Sliding windows are not supported.
type MixtralConfig struct {
	LlamaConfig
	Experts         int     // num_local_experts
	ExpertsPerToken int     // num_experts_per_tok
	AuxLoss         float64 // router_aux_loss_coef; only told to others
}

// Class is MixtralForCausalLM.
func (c *MixtralConfig) Class() string { return "MixtralForCausalLM" }

// Validate reports every field that makes no sense, by its name in config.json.
func (c *MixtralConfig) Validate() error {
	k := &checker{}
	k.size("num_local_experts", c.Experts, maxLayers)
	k.size("num_experts_per_tok", c.ExpertsPerToken, max(c.Experts, 1))
	if !(c.AuxLoss >= 0) {
		k.bad("router_aux_loss_coef = %v is negative", c.AuxLoss)
	}
	if c.Window != 0 {
		k.bad("sliding_window = %d: windows are not supported with experts", c.Window)
	}
	if err := c.LlamaConfig.Validate(); err != nil {
		k.errs = append(k.errs, err)
	}
	if n := c.Layers * c.Experts; len(k.errs) == 0 && n > 1<<20 {
		k.bad("num_local_experts = %d in %d layers are too many", c.Experts, c.Layers)
	}
	return k.err()
}

// Tensors lists every tensor of the model: those of a Mistral with, in place of gate, up and down, the router [E, D]
// and w1 (gate), w3 (up) [F, D] and w2 (down) [D, F] of each expert.
func (c *MixtralConfig) Tensors() []Spec {
	var specs []Spec
	for _, s := range c.LlamaConfig.Tensors() {
		layer, kind, is := strings.Cut(s.Name, ".mlp.")
		switch {
		case !is:
			specs = append(specs, s)
			continue
		case kind != "gate_proj.weight":
			continue
		}
		at := layer + ".block_sparse_moe."
		specs = append(specs, Spec{at + "gate.weight", []int{c.Experts, c.HiddenSize}})
		for e := range c.Experts {
			expert := fmt.Sprintf("%sexperts.%d.", at, e)
			specs = append(specs, Spec{expert + "w1.weight", []int{c.FFNSize, c.HiddenSize}},
				Spec{expert + "w2.weight", []int{c.HiddenSize, c.FFNSize}},
				Spec{expert + "w3.weight", []int{c.FFNSize, c.HiddenSize}})
		}
	}
	return specs
}

func (c *MixtralConfig) settings() map[string]any {
	m := c.LlamaConfig.settings()
	for _, name := range []string{"attention_bias", "mlp_bias", "pretraining_tp"} {
		delete(m, name)
	}
	m["architectures"], m["model_type"], m["sliding_window"] = []string{c.Class()}, "mixtral", nil
	m["num_local_experts"], m["num_experts_per_tok"] = c.Experts, c.ExpertsPerToken
	m["router_aux_loss_coef"], m["output_router_logits"], m["router_jitter_noise"] = float(c.AuxLoss), false, float(0)
	return m
}

// parseMixtral takes the settings of a Mixtral.
func (f *fields) parseMixtral() *MixtralConfig {
	c := &MixtralConfig{ExpertsPerToken: 2, Experts: 8, AuxLoss: 0.001}
	f.take("num_experts_per_tok", &c.ExpertsPerToken)
	f.take("num_local_experts", &c.Experts)
	f.take("router_aux_loss_coef", &c.AuxLoss)
	only(f, "router_jitter_noise", 0.0)
	var router bool
	f.take("output_router_logits", &router) // how to train
	c.LlamaConfig = *f.parseLlama("mixtral")
	return c
}
