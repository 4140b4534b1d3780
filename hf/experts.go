package hf

import (
	"fmt"
	"strings"
)

// experts checks routed experts: their number, by its name in config.json, how many a token goes through, and the
// coefficient of the load-balancing loss. Sliding windows are not supported beside them.
func (k *checker) experts(c *LlamaConfig, name string, experts, perToken int, aux float64) {
	k.size(name, experts, maxLayers)
	k.size("num_experts_per_tok", perToken, max(experts, 1))
	if !(aux >= 0) {
		k.bad("router_aux_loss_coef = %v is negative", aux)
	}
	if c.Window != 0 {
		k.bad("sliding_window = %d: windows are not supported with experts", c.Window)
	}
	if err := c.Validate(); err != nil {
		k.errs = append(k.errs, err)
	}
	if n := c.Layers * experts; len(k.errs) == 0 && n > 1<<20 {
		k.bad("%s = %d in %d layers are too many", name, experts, c.Layers)
	}
}

// expertSpecs lists the tensors of a Llama whose feed-forward layers are routed experts. In place of gate, up and
// down, the module named at has the router [E, D] and, for each expert, gate and up [F, D] and down [D, F] under the
// given names.
func expertSpecs(c *LlamaConfig, at string, names struct{ gate, up, down string }, experts, ffn int) []Spec {
	var specs []Spec
	for _, s := range c.Tensors() {
		layer, kind, is := strings.Cut(s.Name, ".mlp.")
		switch {
		case !is:
			specs = append(specs, s)
			continue
		case kind != "gate_proj.weight":
			continue
		}
		specs = append(specs, Spec{fmt.Sprintf("%s.%s.gate.weight", layer, at), []int{experts, c.HiddenSize}})
		for e := range experts {
			add := func(name string, out, in int) {
				weight := fmt.Sprintf("%s.%s.experts.%d.%s.weight", layer, at, e, name)
				specs = append(specs, Spec{weight, []int{out, in}})
			}
			add(names.gate, ffn, c.HiddenSize)
			add(names.up, ffn, c.HiddenSize)
			add(names.down, c.HiddenSize, ffn)
		}
	}
	return specs
}
