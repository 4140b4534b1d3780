package config

import (
	"fmt"
	"reflect"
)

// expertKeys lists the keys that only a family with experts reads.
var expertKeys = []string{
	"model.experts", "model.experts_per_token", "model.expert_ffn", "model.shared_expert_ffn",
	"model.normalise_experts", "model.router_aux_loss", "model.router_z_loss",
}

// hasExperts reports whether a family has routed experts.
func hasExperts(family string) bool { return family == "qwen3_moe" }

// resolveExperts derives the width of an expert. The experts of a token together are about as wide as the feed-forward
// layer of a model without experts.
func (c *Config) resolveExperts() {
	if m := &c.Model; hasExperts(m.Family) && m.ExpertsPerToken > 0 {
		c.derive("model.expert_ffn", (m.FFN/m.ExpertsPerToken+15)/16*16)
	}
}

// experts checks the experts, or that there are none.
func (k *checker) experts() {
	m := &k.c.Model
	if !hasExperts(m.Family) {
		for _, name := range expertKeys {
			v := reflect.ValueOf(k.c).Elem().FieldByIndex(allKeys[keyIndex[name]].index)
			if !v.IsZero() && familyOf(m.Family).name != "" {
				k.fault(name, fmt.Sprintf("model.family = qwen3_moe, or remove %s", name),
					"%s = %v does not work with model.family = %s", name, v, m.Family)
			}
		}
		return
	}
	if k.between("model.experts", m.Experts, 1, 1<<12) {
		k.between("model.experts_per_token", m.ExpertsPerToken, 1, m.Experts)
	}
	k.between("model.expert_ffn", m.ExpertFFN, 1, 1<<20)
	k.between("model.shared_expert_ffn", m.SharedExpertFFN, 0, 1<<20)
	k.number("model.router_aux_loss", m.RouterAuxLoss, 0, 1e3, "[)")
	k.number("model.router_z_loss", m.RouterZLoss, 0, 1e3, "[)")
}
