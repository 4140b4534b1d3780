package config

import (
	"strings"
	"testing"

	"anneal/nn"
)

// A file gives schemes as a list or as text; what is left out is derived, and a resolved config says the same again.
func TestPositionsAreAListOrAText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "rope",
		"positions: none":                    "none",
		"positions: [rope, rope, none]":      "rope,rope,none",
		"positions: rope,rope,none":          "rope,rope,none",
		"positions:\n    - rope\n    - none": "rope,none",
	} {
		c, err := parse([]byte(minimal+"model:\n  layers: 6\n  "+text+"\n"), "run.yaml", nil)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if c.Model.Positions.String() != want {
			t.Errorf("%q is %q, want %q", text, c.Model.Positions, want)
		}
		again, err := parse(c.YAML(), "config.yaml", nil)
		if err != nil || again.Model.Differences(c.Model) != nil {
			t.Errorf("%q: read back, %v, the model is %+v, want %+v", text, err, again.Model, c.Model)
		}
	}
	if p := problemsOf(t, minimal+"model:\n  dim: [384, 384]\n"); p[0].Key != "model.dim" {
		t.Errorf("a list of widths: %+v", p)
	}
	if p := problemsOf(t, minimal+"model:\n  positions: [rope, [none]]\n"); p[0].Key != "model.positions" {
		t.Errorf("a list of lists: %+v", p)
	}
}

// The context of the first training follows the factor, and the present context.
func TestOriginalContextIsDerived(t *testing.T) {
	load := func(text string, overrides ...string) *Config {
		t.Helper()
		c, err := parse([]byte(text), "run.yaml", overrides)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load(minimal, "model.context=1024", "model.rope_scaling=yarn:4")
	if want := (nn.RoPEScaling{Kind: "yarn", Factor: 4, Fast: 32, Slow: 1}); c.Model.RopeScaling != want ||
		c.Model.RopeOriginalContext != 256 {
		t.Errorf("yarn:4 at 1024 tokens is %+v from %d on, want %+v from 256 on",
			c.Model.RopeScaling, c.Model.RopeOriginalContext, want)
	}
	if got := load(string(c.YAML()), "model.rope_scaling=yarn:8").Model.RopeOriginalContext; got != 128 {
		t.Errorf("with another factor the original context is %d, want 128", got)
	}
	if got := load(minimal, "model.rope_scaling=llama3:8",
		"model.rope_original_context=8192").Model.RopeOriginalContext; got != 8192 {
		t.Errorf("a given original context is %d", got)
	}
	if got := load(minimal, "model.rope_scaling=linear:4").Model.RopeOriginalContext; got != 0 {
		t.Errorf("linear scaling has an original context, %d", got)
	}
}

func TestPositionsThatCannotWork(t *testing.T) {
	const global = "model.longformer_global_projections=true model.attention=longformer:8:4"
	for _, c := range []struct{ overrides, key, says string }{
		{"model.positions=sinusoidal", "model.positions", "rope, alibi, learned, none"},
		{"model.positions=", "model.positions", "names no scheme"},
		{"model.rope_scaling=yarn:4:fast=3:fast=4", "model.rope_scaling", "fast of yarn is given twice"},
		{"model.attention=linear model.rope_scaling=yarn:4", "model.rope_scaling",
			"layers of linear attention have no rotary positions"},
		{"model.positions=rope,alibi model.attention_softcap=50", "model.attention_softcap", "not work with ALiBi"},
		{"model.attention_softcap=-1", "model.attention_softcap", "lies outside"},
		{"model.attention=linear model.attention_sinks=true", "model.attention_sinks", "no effect"},
		{"parallel.context=2 model.attention_sinks=true", "model.attention_sinks", "not work with parallel.context"},
		{"model.short_conv=4", "model.short_conv", "no effect"},
		{"model.attention=delta model.short_conv=17", "model.short_conv", "too large"},
		{"model.attention=delta model.short_conv=-1", "model.short_conv", "too small"},
		{"model.attention=delta model.short_conv=4 parallel.context=2", "model.short_conv",
			"not work with parallel.context"},
		{"model.longformer_global_projections=true", "model.longformer_global_projections", "no effect"},
		{global + " parallel.context=2", "model.longformer_global_projections", "not work with parallel.context"},
		{global + " model.kv_lora_rank=32", "model.longformer_global_projections", "not work with model.kv_lora_rank"},
		{global + " model.attention_sinks=true", "model.longformer_global_projections", "model.attention_sinks"},
		{global + ",linear", "model.longformer_global_projections", "layers of linear attention"},
		{global + " model.family=anneal", "model.longformer_global_projections", "model.value_embeddings"},
		{"model.kv_lora_rank=32 model.rope_head_dim=7", "model.rope_head_dim", "odd"},
		{"model.kv_lora_rank=32 model.rope_head_dim=4096", "model.rope_head_dim", "too large"},
		{"model.kv_lora_rank=32 model.qkv_bias=true", "model.kv_lora_rank", "not work with model.qkv_bias"},
		{"model.kv_lora_rank=32 model.rope_head_dim=4 model.rope_scaling=longrope:2:long=1,2,3",
			"model.rope_scaling", "4 rotated elements"},
		{"model.kv_lora_rank=32 model.qk_norm=true", "model.kv_lora_rank", "not work with model.qk_norm"},
		{"model.kv_lora_rank=32 model.kv_heads=1", "model.kv_lora_rank", "keys of its own"},
		{"model.kv_lora_rank=32 model.family=gemma3", "model.kv_lora_rank", "model.family = gemma3"},
		{"model.kv_lora_rank=32 model.positions=rope,none", "model.kv_lora_rank", "without rotary positions"},
		{"model.kv_lora_rank=32 parallel.tensor=2", "model.kv_lora_rank", "not work with parallel.tensor"},
		{"model.rope_head_dim=16", "model.rope_head_dim", "no effect"},
		{"model.positions=learned,none", "model.positions", "do not mix"},
		{"model.positions=rope,none,rope model.layers=2", "model.positions", "3 schemes for 2 layers"},
		{"model.dim=60 model.heads=4", "model.heads", "odd"},
		{"model.head_dim=15", "model.head_dim", "model.positions = alibi"},
		{"model.rope_scaling=yarn:0.5", "model.rope_scaling", "from 1 to 1048576"},
		{"model.rope_scaling=YaRN:2", "model.rope_scaling", "none, or linear, ntk, dynamic, yarn, llama3 or longrope"},
		{"model.rope_scaling=longrope:2:long=1,2,3", "model.rope_scaling", "has 3 factors"},
		{"model.rope_scaling=yarn", "model.rope_scaling", "yarn:4"},
		{"model.rope_scaling=yarn:4 model.rope_original_context=-5", "model.rope_original_context", "too small"},
		{"model.rope_layout=halves", "model.rope_layout", "half"},
		{"model.positions=none model.rope_theta=5e5", "model.rope_theta", "no effect"},
		{"model.positions=learned model.rope_scaling=yarn:4", "model.rope_scaling", "no effect"},
		{"model.positions=none model.rope_layout=interleaved", "model.rope_layout", "no effect"},
		{"model.rope_original_context=512", "model.rope_original_context", "no effect"},
		{"model.rope_scaling=ntk:4 model.rope_original_context=512", "model.rope_original_context", "no effect"},
	} {
		p := problemsOf(t, minimal, strings.Fields(c.overrides)...)
		if len(p) != 1 || p[0].Key != c.key || !strings.Contains(p[0].Error(), c.says) {
			t.Errorf("%s: %+v, want one problem of %s with %q", c.overrides, p, c.key, c.says)
		}
	}
	for set, says := range map[string]string{
		"train.length_warmup=64 over 10%": "not work with train.length_warmup",
		"model.lora_rank=4":               "not work with model.lora_rank",
	} {
		p := problemsOf(t, minimal, append(strings.Fields(global), set, "init.from=x")...)
		if len(p) != 1 || p[0].Key != "model.longformer_global_projections" || !strings.Contains(p[0].Error(), says) {
			t.Errorf("%s: %+v, want %q", set, p, says)
		}
	}
	if _, err := parse([]byte(minimal), "run.yaml", []string{
		"model.positions=none", "model.dim=60", "model.heads=4",
	}); err != nil {
		t.Errorf("an odd head without rotary positions: %v", err)
	}
}
