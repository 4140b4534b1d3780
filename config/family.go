package config

import (
	"fmt"
	"slices"
	"strings"

	"anneal/model"
)

// A family is a set of defaults for a model, each of which can be overridden.
type family struct {
	name        string
	activations []string          // the activations that it supports
	values      map[string]string // its defaults where they differ from Default, which is llama's
	standard    bool              // it has only the standard parametrisation, not muP
}

var families = []family{
	{name: "llama", activations: []string{"swiglu"}},
	{name: "gpt2", activations: []string{"gelu"}, values: map[string]string{
		"model.activation": "gelu", "model.positions": "learned",
	}},
	{name: "anneal", activations: []string{"relu2", "swiglu"}, values: map[string]string{
		"model.activation": "relu2", "model.qk_norm": "true", "model.init": "xavier", "model.zero_init": "residual",
		"model.logit_softcap": "30", "model.value_embeddings": "alternate", "model.x0_skip": "true",
	}},
	{name: "olmo2", standard: true, activations: []string{"swiglu"}, values: map[string]string{
		"model.qk_norm": "true", "model.norm_eps": "1e-06", "model.rope_theta": "500000",
	}},
	{name: "phi3", standard: true, activations: []string{"swiglu"}},
	{name: "gemma2", standard: true, activations: []string{"geglu"}, values: map[string]string{
		"model.activation": "geglu", "model.norm_eps": "1e-06", "model.attention_softcap": "50",
		"model.logit_softcap": "30",
	}},
	{name: "gemma3", standard: true, activations: []string{"geglu"}, values: map[string]string{
		"model.activation": "geglu", "model.qk_norm": "true", "model.norm_eps": "1e-06", "model.rope_theta": "1e+06",
		"model.rope_theta_local": "10000",
	}},
	{name: "qwen3_moe", standard: true, activations: []string{"swiglu"}, values: map[string]string{
		"model.qk_norm": "true", "model.norm_eps": "1e-06", "model.rope_theta": "1e+06",
		"model.experts": "8", "model.experts_per_token": "2", "model.normalise_experts": "true",
		"model.router_aux_loss": "0.001",
	}},
}

// familyOf returns the family with the given name; the zero family if the name is unknown.
func familyOf(name string) family {
	for _, f := range families {
		if f.name == name {
			return f
		}
	}
	return family{}
}

func familyNames() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// familyRule describes how the default of a key depends on the family: "qk_norm = true with model.family = anneal,
// else false".
func familyRule(name, otherwise string) string {
	var parts []string
	for _, f := range families {
		if v, has := f.values[name]; has {
			parts = append(parts, v+" with model.family = "+f.name)
		}
	}
	if parts == nil {
		return ""
	}
	return name[strings.LastIndexByte(name, '.')+1:] + " = " + strings.Join(parts, ", ") + ", else " + otherwise
}

// resolveFamily fills in the family's defaults for keys that were not given.
func (c *Config) resolveFamily() {
	for name, v := range familyOf(c.Model.Family).values {
		c.deriveOfFamily(name, v)
	}
	switch c.Model.Family {
	case "anneal":
		c.deriveOfFamily("model.attention", windowCycle(&c.Model, 3))
	case "gemma2":
		c.deriveOfFamily("model.attention", windowCycle(&c.Model, 1))
	case "gemma3":
		c.deriveOfFamily("model.attention", windowCycle(&c.Model, 5))
	}
}

// windowCycle returns n layers with windows of a quarter of the context, in multiples of 64, followed by one full
// layer. It returns full if there are too few layers or the context is too short.
func windowCycle(m *model.Config, n int) string {
	w := (m.Context/4 + 63) / 64 * 64
	if m.Layers <= n || w < 1 || w >= m.Context {
		return "full"
	}
	return strings.Repeat(fmt.Sprintf("window:%d,", w), n) + "full"
}

// deriveOfFamily sets a key to the family's default if it was not given.
func (c *Config) deriveOfFamily(name, value string) {
	if _, given := c.origins[name]; !given {
		c.DeriveText(name, value, name[strings.LastIndexByte(name, '.')+1:]+" of "+c.Model.Family)
	}
}

// familiesWith names the families that support an activation.
func familiesWith(activation string) string {
	var names []string
	for _, f := range families {
		if slices.Contains(f.activations, activation) {
			names = append(names, f.name)
		}
	}
	return strings.Join(names, " or ")
}

// family checks keys that only some families support.
func (k *checker) family() {
	m := &k.c.Model
	has := familyOf(m.Family).activations
	if has == nil {
		return // the unknown family has been reported, and nothing else can be checked
	}
	if !slices.Contains(has, m.Activation) && !k.reported("model.activation") {
		k.notOf(m.Family, "model.activation", m.Activation, familiesWith(m.Activation), strings.Join(has, " or "))
	}
	if m.Family == "olmo2" && m.KVHeads != m.Heads && m.KVHeads > 0 {
		k.fault("model.kv_heads", fmt.Sprintf("model.kv_heads = %d", m.Heads), "model.kv_heads = %d does not work "+
			"with model.family = olmo2, whose norms of queries and of keys have one size", m.KVHeads)
	}
	if m.Family == "olmo2" && k.c.Device == "cuda" {
		k.fault("device", "device = cpu", "device = cuda does not work with model.family = olmo2 yet: the kernel of "+
			"QK-norm has room for a head, not for all of them")
	}
	if m.Family == "olmo2" && m.KVLoraRank > 0 {
		k.notOf(m.Family, "model.kv_lora_rank", fmt.Sprint(m.KVLoraRank), "llama", "0")
	}
	if m.Family == "gpt2" && m.QKVBias {
		k.notOf(m.Family, "model.qkv_bias", "true", "llama", "false")
	}
	if m.Family == "anneal" {
		return
	}
	if m.ValueEmbeddings != "none" {
		k.notOf(m.Family, "model.value_embeddings", m.ValueEmbeddings, "anneal", "none")
	}
	if m.X0Skip {
		k.notOf(m.Family, "model.x0_skip", "true", "anneal", "false")
	}
}

func (k *checker) notOf(family, key, value, of, without string) {
	k.fault(key, "model.family = "+of+", or "+key+" = "+without,
		"%s = %s does not work with model.family = %s", key, value, family)
}
