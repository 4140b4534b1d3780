package hf

import (
	"encoding/json"
	"maps"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// plain is a config.json as transformers 4 wrote it.
func plain() map[string]any {
	return map[string]any{
		"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}, "vocab_size": 100, "hidden_size": 32,
		"intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "rope_theta": 1e6, "rope_scaling": nil,
		"rms_norm_eps": 1e-5, "hidden_act": "silu", "torch_dtype": "bfloat16", "attention_bias": false, "mlp_bias": false,
	}
}

func parseMap(t *testing.T, m map[string]any) (LlamaConfig, error) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return parseConfig(text)
}

func TestConfigDefaultsAreThoseOfTransformers(t *testing.T) {
	got, err := parseMap(t, plain())
	if err != nil {
		t.Fatal(err)
	}
	want := LlamaConfig{
		VocabSize: 100, HiddenSize: 32, FFNSize: 64, Layers: 2, Heads: 4, KVHeads: 4, HeadDim: 8, MaxPositions: 2048,
		RopeTheta: 1e6, NormEps: 1e-5, InitStd: 0.02, BOS: 1, EOS: []int{2}, Pad: -1,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("config = %+v, want %+v", got, want)
	}
	m := plain()
	delete(m, "rope_theta")
	delete(m, "rms_norm_eps")
	if got, err := parseMap(t, m); err != nil || got.RopeTheta != 10000 || got.NormEps != 1e-6 {
		t.Errorf("theta %v, eps %v, %v; want 10000 and 1e-6", got.RopeTheta, got.NormEps, err)
	}
	for name, c := range map[string]struct {
		key  string
		v    any
		pick func(LlamaConfig) any
		want any
	}{
		"no bos":       {"bos_token_id", nil, func(c LlamaConfig) any { return c.BOS }, -1},
		"no eos":       {"eos_token_id", nil, func(c LlamaConfig) any { return len(c.EOS) }, 0},
		"several eos":  {"eos_token_id", []int{3, 5}, func(c LlamaConfig) any { return c.EOS[1] }, 5},
		"theta in v5":  {"rope_parameters", map[string]any{"rope_type": "default", "rope_theta": 7.5}, func(c LlamaConfig) any { return c.RopeTheta }, 7.5},
		"plain in v4":  {"rope_scaling", map[string]any{"type": "default"}, func(c LlamaConfig) any { return c.RopeTheta }, 1e6},
		"tied":         {"tie_word_embeddings", true, func(c LlamaConfig) any { return c.Tied }, true},
		"wide heads":   {"head_dim", 64, func(c LlamaConfig) any { return c.HeadDim }, 64},
		"grouped":      {"num_key_value_heads", 1, func(c LlamaConfig) any { return c.KVHeads }, 1},
		"unknown null": {"novelty", nil, func(c LlamaConfig) any { return c.Layers }, 2},
		"unknown off":  {"novelty", false, func(c LlamaConfig) any { return c.Layers }, 2},
		"no dropout":   {"attention_dropout", 0.0, func(c LlamaConfig) any { return c.Layers }, 2},
	} {
		m := plain()
		m[c.key] = c.v
		got, err := parseMap(t, m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if v := c.pick(got); v != c.want {
			t.Errorf("%s: %v, want %v", name, v, c.want)
		}
	}
}

func TestConfigRefusesWhatItCannotRepresent(t *testing.T) {
	drop := struct{}{}
	for _, c := range []struct {
		key  string
		v    any
		want string
	}{
		{"model_type", "gemma", `model_type = "gemma"`},
		{"model_type", drop, "model_type is missing"},
		{"model_type", 5, "model_type = 5 has the wrong type"},
		{"architectures", []string{"LlamaForSequenceClassification"}, "architectures"},
		{"vocab_size", drop, "vocab_size is missing"},
		{"vocab_size", nil, "vocab_size = null"},
		{"vocab_size", "many", "vocab_size"},
		{"vocab_size", 0, "vocab_size = 0"},
		{"hidden_size", -4, "hidden_size = -4"},
		{"hidden_size", 1 << 40, "hidden_size"},
		{"hidden_size", 32.5, "hidden_size = 32.5"},
		{"hidden_size", 34, "does not divide hidden_size = 34"},
		{"num_hidden_layers", 1_000_000, "num_hidden_layers"},
		{"num_key_value_heads", 3, "num_key_value_heads = 3"},
		{"num_attention_heads", 0, "num_attention_heads = 0"},
		{"head_dim", 7, "head_dim = 7"},
		{"hidden_act", "gelu", "hidden_act = gelu"},
		{"attention_bias", true, "attention_bias = true"},
		{"mlp_bias", true, "mlp_bias = true"},
		{"rope_scaling", map[string]any{"type": "linear", "factor": 2.0}, "rope_scaling.type = linear"},
		{"rope_scaling", map[string]any{"factor": 2.0}, "rope_scaling.factor"},
		{"rope_parameters", map[string]any{"rope_type": "llama3"}, "rope_parameters.rope_type = llama3"},
		{"rope_scaling", "none", "rope_scaling"},
		{"partial_rotary_factor", 0.5, "partial_rotary_factor = 0.5"},
		{"rope_theta", -1.0, "rope_theta = -1"},
		{"rms_norm_eps", 0.0, "rms_norm_eps = 0"},
		{"use_sliding_window", true, "use_sliding_window = true"},
		{"layer_types", []string{"sliding_attention"}, "layer_types"},
		{"quantization_config", map[string]any{"bits": 4}, "quantization_config"},
		{"auto_map", map[string]any{"AutoModel": "x.Y"}, "auto_map"},
		{"novelty", 1, "novelty = 1"},
		{"eos_token_id", 100, "outside of the vocabulary"},
		{"eos_token_id", "end", "eos_token_id"},
		{"bos_token_id", -2, "outside of the vocabulary"},
	} {
		m := plain()
		m[c.key] = c.v
		if c.v == drop {
			delete(m, c.key)
		}
		_, err := parseMap(t, m)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %v: error %v, want one that says %q", c.key, c.v, err, c.want)
		}
	}
}

func TestConfigReportsAllErrorsAtOnce(t *testing.T) {
	m := plain()
	maps.Copy(m, map[string]any{"hidden_act": "relu", "mlp_bias": true, "novelty": 3})
	_, err := parseMap(t, m)
	for _, want := range []string{"hidden_act", "mlp_bias", "novelty"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

func TestQwen3NeedsWhatItsDefaultsGetWrong(t *testing.T) {
	m := plain()
	m["model_type"] = "qwen3"
	delete(m, "architectures")
	delete(m, "rope_theta")
	_, err := parseMap(t, m)
	for _, want := range []string{"num_key_value_heads is missing", "head_dim is missing", "rope_theta is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

// FuzzConfig: no panic, and whatever is accepted is valid. The parser may allocate 64 bytes for each byte, and 64 KiB.
func FuzzConfig(f *testing.F) {
	text, err := json.Marshal(plain())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"model_type":"qwen3","rope_parameters":{"rope_theta":1}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := parseConfig(text)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(64*len(text)+64<<10); got > limit {
			t.Errorf("%d bytes allocated for %d bytes of config, the ceiling is %d", got, len(text), limit)
		}
		if err == nil && c.Validate() != nil {
			t.Errorf("accepted %s as %+v", text, c)
		}
	})
}
