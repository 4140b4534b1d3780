package hf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"anneal/safetensors"
)

// Spec is a tensor that a model must have.
type Spec struct {
	Name  string
	Shape []int
}

// LlamaTensors lists every tensor of a model. Linear weights are [out, in], row-major. With V vocabulary, D hidden, H
// heads, K key/value heads, E head dim, F ffn: embedding and head [V, D], q [H·E, D], k and v [K·E, D], o [D, H·E],
// gate and up [F, D], down [D, F], norms [D], QK-norms [E]. A tied model has no lm_head.
func LlamaTensors(c LlamaConfig) []Spec {
	d, q, kv := c.HiddenSize, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	specs := []Spec{{"model.embed_tokens.weight", []int{c.VocabSize, d}}}
	for i := range c.Layers {
		add := func(name string, shape ...int) {
			specs = append(specs, Spec{fmt.Sprintf("model.layers.%d.%s.weight", i, name), shape})
		}
		add("input_layernorm", d)
		add("self_attn.q_proj", q, d)
		add("self_attn.k_proj", kv, d)
		add("self_attn.v_proj", kv, d)
		add("self_attn.o_proj", d, q)
		if c.QKNorm {
			add("self_attn.q_norm", c.HeadDim)
			add("self_attn.k_norm", c.HeadDim)
		}
		add("post_attention_layernorm", d)
		add("mlp.gate_proj", c.FFNSize, d)
		add("mlp.up_proj", c.FFNSize, d)
		add("mlp.down_proj", d, c.FFNSize)
	}
	specs = append(specs, Spec{"model.norm.weight", []int{d}})
	if !c.Tied {
		specs = append(specs, Spec{"lm_head.weight", []int{c.VocabSize, d}})
	}
	return specs
}

// match demands that have is exactly the set of tensors of a model, and names every difference. Buffers that old versions
// of transformers saved, and that follow from the config, are let pass.
func match(c LlamaConfig, have []safetensors.Info) error {
	byName := make(map[string]safetensors.Info, len(have))
	for _, t := range have {
		byName[t.Name] = t
	}
	var problems []string
	for _, want := range LlamaTensors(c) {
		got, ok := byName[want.Name]
		delete(byName, want.Name)
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("tensor %q is missing", want.Name))
		case !slices.Equal(got.Shape, want.Shape):
			problems = append(problems, fmt.Sprintf("tensor %q has shape %v, the config asks for %v", want.Name, got.Shape, want.Shape))
		}
	}
	for name := range byName {
		switch {
		case strings.HasSuffix(name, ".rotary_emb.inv_freq"):
		case name == "lm_head.weight" && c.Tied:
			problems = append(problems, `tensor "lm_head.weight" is present, but tie_word_embeddings is true`)
		default:
			problems = append(problems, fmt.Sprintf("tensor %q is not part of the model", name))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	if n := len(problems); n > 12 {
		problems = append(problems[:12], fmt.Sprintf("and %d more", n-12))
	}
	return errors.New(strings.Join(problems, "\n  "))
}
