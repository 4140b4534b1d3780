package hf

// Qwen3MoEConfig describes a Qwen3 whose feed-forward layers are routed experts. Sliding windows, and layers without
// experts, are not supported.
type Qwen3MoEConfig struct {
	LlamaConfig
	Experts         int     // num_experts
	ExpertsPerToken int     // num_experts_per_tok
	ExpertFFN       int     // moe_intermediate_size
	Normalise       bool    // norm_topk_prob
	AuxLoss         float64 // router_aux_loss_coef; only passed on
}

// Class returns Qwen3MoeForCausalLM.
func (c *Qwen3MoEConfig) Class() string { return "Qwen3MoeForCausalLM" }

// Validate reports every invalid field, by its name in config.json.
func (c *Qwen3MoEConfig) Validate() error {
	k := &checker{}
	k.size("moe_intermediate_size", c.ExpertFFN, maxSize)
	k.experts(&c.LlamaConfig, "num_experts", c.Experts, c.ExpertsPerToken, c.AuxLoss)
	return k.err()
}

// Tensors lists every tensor of the model; see expertSpecs.
func (c *Qwen3MoEConfig) Tensors() []Spec {
	names := struct{ gate, up, down string }{"gate_proj", "up_proj", "down_proj"}
	return expertSpecs(&c.LlamaConfig, "mlp", names, c.Experts, c.ExpertFFN)
}

func (c *Qwen3MoEConfig) settings() map[string]any {
	m := c.LlamaConfig.settings()
	delete(m, "layer_types")
	m["architectures"], m["model_type"] = []string{c.Class()}, "qwen3_moe"
	m["num_experts"], m["num_experts_per_tok"], m["moe_intermediate_size"] = c.Experts, c.ExpertsPerToken, c.ExpertFFN
	m["norm_topk_prob"], m["router_aux_loss_coef"], m["output_router_logits"] = c.Normalise, float(c.AuxLoss), false
	m["decoder_sparse_step"], m["mlp_only_layers"] = 1, []int{}
	return m
}

// parseQwen3MoE takes the settings of a Qwen3-MoE.
func (f *fields) parseQwen3MoE() *Qwen3MoEConfig {
	c := &Qwen3MoEConfig{AuxLoss: 0.001}
	f.must("num_experts_per_tok", &c.ExpertsPerToken)
	if !f.take("num_experts", &c.Experts) { // its name in transformers 4
		f.must("num_local_experts", &c.Experts)
	}
	only(f, "num_local_experts", c.Experts)
	f.must("moe_intermediate_size", &c.ExpertFFN)
	f.take("norm_topk_prob", &c.Normalise)
	f.take("router_aux_loss_coef", &c.AuxLoss)
	var router bool
	f.take("output_router_logits", &router) // how to train
	only(f, "decoder_sparse_step", 1)
	var plain []int
	if f.take("mlp_only_layers", &plain); len(plain) > 0 {
		f.fail("mlp_only_layers = %v is not supported: every layer must have experts", plain)
	}
	c.LlamaConfig = *f.parseLlama("qwen3_moe")
	return c
}
