package hf

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// plainGemma is the config.json of google/gemma-3-1b-pt in outline, as transformers 4.51 wrote it.
func plainGemma() map[string]any {
	return map[string]any{
		"model_type": "gemma3_text", "architectures": []string{"Gemma3ForCausalLM"}, "vocab_size": 100,
		"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 8, "num_attention_heads": 4,
		"num_key_value_heads": 1,
		"head_dim":            16, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "query_pre_attn_scalar": 16,
		"hidden_activation": "gelu_pytorch_tanh", "rope_theta": 1000000, "rope_local_base_freq": 10000,
		"rope_scaling": nil, "sliding_window": 8, "sliding_window_pattern": 6, "final_logit_softcapping": nil,
		"attn_logit_softcapping": nil, "attention_bias": false, "cache_implementation": nil,
	}
}

func plainMoE() map[string]any {
	return map[string]any{
		"model_type": "qwen3_moe", "architectures": []string{"Qwen3MoeForCausalLM"}, "vocab_size": 100,
		"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
		"num_key_value_heads": 1,
		"head_dim":            16, "max_position_embeddings": 64,
		"rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": "silu",
		"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "norm_topk_prob": true,
		"decoder_sparse_step": 1, "mlp_only_layers": []int{}, "router_aux_loss_coef": 0.001,
		"output_router_logits": false, "use_sliding_window": false, "sliding_window": nil, "max_window_layers": 28,
	}
}

// Missing settings of models of experts and of Qwen3 have the defaults of their own classes.
func TestDefaultsAreThoseOfTheClass(t *testing.T) {
	without := func(m map[string]any, keys ...string) Config {
		for _, key := range keys {
			delete(m, key)
		}
		c, err := parseMap(t, m)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	mixtral := plainMoE()
	maps.DeleteFunc(mixtral, func(key string, _ any) bool {
		return strings.Contains(key, "moe") || strings.Contains(key, "sparse") || strings.Contains(key, "topk") ||
			strings.Contains(key, "window") || key == "num_experts" || key == "mlp_only_layers"
	})
	mixtral["model_type"], mixtral["architectures"] = "mixtral", []string{"MixtralForCausalLM"}
	if c := without(mixtral, "rope_theta", "rms_norm_eps").(*MixtralConfig); c.RopeTheta != 1e6 || c.NormEps != 1e-5 {
		t.Errorf("a Mixtral has rope_theta %v and rms_norm_eps %v", c.RopeTheta, c.NormEps)
	}
	moe := without(plainMoE(), "max_position_embeddings", "rms_norm_eps").(*Qwen3MoEConfig)
	if moe.MaxPositions != 32768 || moe.NormEps != 1e-6 {
		t.Errorf("a Qwen3-MoE has %d positions and rms_norm_eps %v", moe.MaxPositions, moe.NormEps)
	}
	qwen := plain()
	maps.Copy(qwen, map[string]any{
		"model_type": "qwen3", "architectures": []string{"Qwen3ForCausalLM"}, "num_key_value_heads": 4, "head_dim": 8,
		"rope_theta": 1e6,
	})
	if c := without(qwen, "max_position_embeddings").(*LlamaConfig); c.MaxPositions != 32768 {
		t.Errorf("a Qwen3 has %d positions", c.MaxPositions)
	}
}

// A period of windows is the list that it stands for, and comes back as both.
func TestGemma3WindowsByPeriod(t *testing.T) {
	c, err := parseMap(t, plainGemma())
	if err != nil {
		t.Fatal(err)
	}
	g := c.(*Gemma3Config)
	want := []bool{true, true, true, true, true, false, true, true}
	if g.Window != 8 || !slices.Equal(g.WindowLayers, want) {
		t.Errorf("windows of %d in %v, want 8 in %v", g.Window, g.WindowLayers, want)
	}
	if !g.Tied || !g.QKNorm || g.LocalTheta != 1e4 || g.RopeTheta != 1e6 || g.LogitSoftcap != 0 {
		t.Errorf("config = %+v", g)
	}
	again, err := parseMap(t, g.settings())
	if err != nil {
		t.Fatal(err)
	}
	same := reflect.DeepEqual(dropTokens(again.(*Gemma3Config)), dropTokens(g))
	if g.settings()["sliding_window_pattern"] != 6 || !same {
		t.Errorf("its settings are read as %+v, want %+v", again, g)
	}
}

func dropTokens(g *Gemma3Config) Gemma3Config {
	c := *g
	c.Tokens = Tokens{}
	return c
}

// The config.json of google/gemma-2-2b in outline: windows in every second layer, though it names none.
func TestGemma2HasWindowsInEverySecondLayer(t *testing.T) {
	plain := plainGemma()
	for _, name := range []string{"rope_local_base_freq", "sliding_window_pattern"} {
		delete(plain, name)
	}
	plain["model_type"], plain["architectures"] = "gemma2", []string{"Gemma2ForCausalLM"}
	plain["rope_theta"], plain["final_logit_softcapping"] = 10000, 30.0
	plain["hidden_act"], plain["num_hidden_layers"] = "gelu_pytorch_tanh", 3
	c, err := parseMap(t, plain)
	if err != nil {
		t.Fatal(err)
	}
	g := c.(*Gemma2Config)
	if g.Window != 8 || !slices.Equal(g.WindowLayers, []bool{true, false, true}) || g.ScoreSoftcap != 0 ||
		g.LogitSoftcap != 30 || !g.Tied || g.QKNorm {
		t.Errorf("config = %+v", g)
	}
	delete(plain, "attn_logit_softcapping")
	if c, err = parseMap(t, plain); err != nil || c.(*Gemma2Config).ScoreSoftcap != 50 {
		t.Errorf("without attn_logit_softcapping: %+v, %v", c, err)
	}
}

// Published models are read with the settings that their config.json has beside those of the model.
func TestSettingsOfPublishedModelsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		plain func() map[string]any
		more  map[string]any
	}{
		"google/gemma-3-1b-pt": {plainGemma, map[string]any{"cache_implementation": "hybrid"}},
		"HuggingFaceTB/SmolLM2-135M-Instruct": {plain, map[string]any{
			"is_llama_config": true, "rope_interleaved": false,
			"transformers.js_config": map[string]any{"kv_cache_dtype": map[string]any{"fp16": "float16"}},
		}},
		"unsloth/Llama-3.2-1B": {plain, map[string]any{"unsloth_fixed": true, "unsloth_version": "2025.5.1"}},
		"huggyllama/llama-7b":  {plain, map[string]any{"max_sequence_length": 2048}},
		"distilgpt2": {plainGPT2, map[string]any{
			"_num_labels": 1, "id2label": map[string]any{"0": "LABEL_0"}, "label2id": map[string]any{"LABEL_0": 0},
		}},
		"gpt2-xl": {plainGPT2, map[string]any{"n_special": 0, "output_past": true, "predict_special_tokens": true}},
	} {
		m := c.plain()
		want, err := parseMap(t, m)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(m, c.more)
		if got, err := parseMap(t, m); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// What these families have in transformers and not here is refused by the name of the field.
func TestFamiliesRefuseWhatTheyCannotRepresent(t *testing.T) {
	rope := func(layer string, settings map[string]any) map[string]any {
		return map[string]any{"rope_parameters": map[string]any{layer: settings}}
	}
	for name, c := range map[string]struct {
		plain  func() map[string]any
		change map[string]any
		says   string
	}{
		"score cap": {plainGemma, map[string]any{"attn_logit_softcapping": 50.0}, "attn_logit_softcapping"},
		"both directions": {plainGemma, map[string]any{"use_bidirectional_attention": true},
			"use_bidirectional_attention"},
		"activation":       {plainGemma, map[string]any{"hidden_activation": "silu"}, "hidden_activation"},
		"no local base":    {plainGemma, map[string]any{"rope_local_base_freq": 0}, "rope_local_base_freq"},
		"scores":           {plainGemma, map[string]any{"query_pre_attn_scalar": 0}, "query_pre_attn_scalar"},
		"no period":        {plainGemma, map[string]any{"sliding_window_pattern": 0}, "sliding_window_pattern = 0"},
		"layer types":      {plainGemma, map[string]any{"layer_types": []string{"full_attention"}}, "layer_types"},
		"two global bases": {plainGemma, rope("full_attention", map[string]any{"rope_theta": 5}), "rope_theta"},
		"scaled windows": {plainGemma, rope("sliding_attention", map[string]any{"rope_type": "linear", "factor": 2}),
			"rope_local_base_freq"},
		"plain layers":     {plainMoE, map[string]any{"mlp_only_layers": []int{0}}, "mlp_only_layers"},
		"every second":     {plainMoE, map[string]any{"decoder_sparse_step": 2}, "decoder_sparse_step"},
		"windows":          {plainMoE, map[string]any{"use_sliding_window": true}, "use_sliding_window"},
		"too many a token": {plainMoE, map[string]any{"num_experts_per_tok": 9}, "num_experts_per_tok"},
		"no experts":       {plainMoE, map[string]any{"num_experts": 0}, "num_experts"},
		"two counts":       {plainMoE, map[string]any{"num_local_experts": 4}, "num_local_experts"},
		"a shared expert": {plainMoE, map[string]any{"shared_expert_intermediate_size": 16},
			"shared_expert_intermediate_size"},
		"negative aux loss": {plainMoE, map[string]any{"router_aux_loss_coef": -1}, "router_aux_loss_coef"},
	} {
		m := c.plain()
		if _, err := parseMap(t, m); err != nil {
			t.Fatalf("%s: before the change: %v", name, err)
		}
		maps.Copy(m, c.change)
		if got, err := parseMap(t, m); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v; want an error that names %s", name, got, err, c.says)
		}
	}
}

// The config.json of microsoft/Phi-3-mini-128k-instruct in outline: the original context stands beside the scaling,
// which had other names before.
func TestPhi3HasItsOriginalContextBesideTheScaling(t *testing.T) {
	plain := func(kind string) map[string]any {
		return map[string]any{
			"model_type": "phi3", "architectures": []string{"Phi3ForCausalLM"}, "vocab_size": 32064, "hidden_size": 32,
			"intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
			"max_position_embeddings": 131072, "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
			"rope_theta": 10000, "sliding_window": 262144, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "hidden_act": "silu",
			"tie_word_embeddings": false, "attention_bias": false, "bos_token_id": 1, "eos_token_id": 2,
			"pad_token_id": 0,
			"auto_map":     map[string]any{"AutoConfig": "configuration_phi3.Phi3Config"},
			"rope_scaling": map[string]any{
				"type": kind, "short_factor": []float64{1, 1, 1, 1.1}, "long_factor": []float64{1, 2, 3, 4},
			},
		}
	}
	for _, kind := range []string{"longrope", "su", "yarn"} {
		c, err := parseMap(t, plain(kind))
		if err != nil {
			t.Fatal(err)
		}
		p := c.(*Phi3Config)
		s := p.RopeScaling
		if s.Type != "longrope" || s.OriginalPositions != 4096 || s.Factor != 32 || p.Window != 262144 ||
			p.HeadDim != 8 {
			t.Errorf("%s: config = %+v", kind, p)
		}
		again, err := parseMap(t, p.settings())
		if err != nil {
			t.Fatal(err)
		}
		q := again.(*Phi3Config)
		if q.Tokens = p.Tokens; !reflect.DeepEqual(q, p) {
			t.Errorf("%s: its settings are read as %+v, want %+v", kind, q, p)
		}
	}
	none := plain("longrope")
	delete(none, "rope_scaling")
	none["sliding_window"], none["partial_rotary_factor"] = nil, 0.75 // as in Phi-4-mini
	if _, err := parseMap(t, none); err == nil || !strings.Contains(err.Error(), "partial_rotary_factor") {
		t.Errorf("a rotated part of each head: %v", err)
	}
}
