package hf

// MixtralConfig describes a Mixtral: a Mistral whose feed-forward layers are routed experts of FFNSize. The weights of
// a token's experts are a softmax over the chosen ones. Sliding windows are not supported.
type MixtralConfig struct {
	LlamaConfig
	Experts         int     // num_local_experts
	ExpertsPerToken int     // num_experts_per_tok
	AuxLoss         float64 // router_aux_loss_coef; only passed on
}

// Class returns MixtralForCausalLM.
func (c *MixtralConfig) Class() string { return "MixtralForCausalLM" }

// Validate reports every invalid field, by its name in config.json.
func (c *MixtralConfig) Validate() error {
	k := &checker{}
	k.experts(&c.LlamaConfig, "num_local_experts", c.Experts, c.ExpertsPerToken, c.AuxLoss)
	return k.err()
}

// Tensors lists every tensor of the model; see expertSpecs.
func (c *MixtralConfig) Tensors() []Spec {
	names := struct{ gate, up, down string }{"w1", "w3", "w2"}
	return expertSpecs(&c.LlamaConfig, "block_sparse_moe", names, c.Experts, c.FFNSize)
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
