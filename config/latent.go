package config

import (
	"slices"

	"anneal/attention"
	"anneal/model"
)

// resolveLatent derives how much of a head is rotated if keys come from a latent: a third, as in DeepSeek-V2.
func (c *Config) resolveLatent() {
	if m := &c.Model; m.KVLoraRank > 0 {
		c.derive("model.rope_head_dim", max(m.HeadDim/3&^1, 2))
	}
}

// latent checks multi-head latent attention, and refuses combinations that it does not support.
func (k *checker) latent() {
	const key = "model.kv_lora_rank"
	m := &k.c.Model
	if !k.between(key, m.KVLoraRank, 0, 1<<16) || m.KVLoraRank == 0 {
		return
	}
	if m.HeadDim > 2 && k.between("model.rope_head_dim", m.RopeHeadDim, 2, m.HeadDim-2) && m.RopeHeadDim%2 != 0 {
		k.fault("model.rope_head_dim", "an even number", "model.rope_head_dim = %d is odd, but rotary positions need "+
			"pairs", m.RopeHeadDim)
	}
	for _, other := range []struct {
		wrong     bool
		what, try string
	}{
		{m.Family != "llama", "model.family = " + m.Family, "model.family = llama"},
		{m.KVHeads != m.Heads, "model.kv_heads other than model.heads: every head has keys of its own",
			"removing model.kv_heads"},
		{m.Positions.String() != "rope" || hasLinear(m), "layers without rotary positions",
			"model.positions = rope and model.attention = full"},
		{m.QKVBias, "model.qkv_bias", "model.qkv_bias = false"},
		{m.QKNorm, "model.qk_norm", "model.qk_norm = false"},
		{m.MuP, "model.mup", "model.mup = false"},
		{k.c.Device == "cuda", "device = cuda", "device = cpu"},
	} {
		if other.wrong && !k.reported(key) {
			k.fault(key, other.try+", or model.kv_lora_rank = 0", "%s = %d does not work with %s", key, m.KVLoraRank,
				other.what)
		}
	}
}

// hasLinear reports whether a layer has linear attention.
func hasLinear(m *model.Config) bool {
	return slices.ContainsFunc(m.Attention, func(p attention.Pattern) bool { _, is := p.(attention.Linear); return is })
}
