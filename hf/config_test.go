package hf

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"anneal/internal/filetest"
)

// plain is a config.json as transformers 4 wrote it.
func plain() map[string]any {
	return map[string]any{
		"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}, "vocab_size": 100, "hidden_size": 32,
		"intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "rope_theta": 1e6,
		"rope_scaling": nil, "rms_norm_eps": 1e-5, "hidden_act": "silu", "torch_dtype": "bfloat16",
		"attention_bias": false, "mlp_bias": false,
	}
}

func parseMap(t *testing.T, m map[string]any) (Config, error) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return parseConfig(text)
}

// parseLlama parses what must be right.
func parseLlama(t *testing.T, m map[string]any) *LlamaConfig {
	t.Helper()
	c, err := parseMap(t, m)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*LlamaConfig)
}

func TestConfigDefaultsAreThoseOfTransformers(t *testing.T) {
	got := parseLlama(t, plain())
	want := &LlamaConfig{
		VocabSize: 100, HiddenSize: 32, FFNSize: 64, Layers: 2, Heads: 4, KVHeads: 4, HeadDim: 8, MaxPositions: 2048,
		RopeTheta: 1e6, NormEps: 1e-5, InitStd: 0.02, Tokens: Tokens{BOS: 1, Pad: -1, EOS: []int{2}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("config = %+v, want %+v", got, want)
	}
	m := plain()
	delete(m, "rope_theta")
	delete(m, "rms_norm_eps")
	if got := parseLlama(t, m); got.RopeTheta != 10000 || got.NormEps != 1e-6 {
		t.Errorf("theta %v, eps %v; want 10000 and 1e-6", got.RopeTheta, got.NormEps)
	}
	for name, c := range map[string]struct {
		key  string
		v    any
		pick func(*LlamaConfig) any
		want any
	}{
		"no bos":      {"bos_token_id", nil, func(c *LlamaConfig) any { return c.BOS }, -1},
		"no eos":      {"eos_token_id", nil, func(c *LlamaConfig) any { return len(c.EOS) }, 0},
		"several eos": {"eos_token_id", []int{3, 5}, func(c *LlamaConfig) any { return c.EOS[1] }, 5},
		"theta in v5": {"rope_parameters", map[string]any{"rope_type": "default", "rope_theta": 1e6},
			func(c *LlamaConfig) any { return c.RopeTheta }, 1e6},
		"plain in v4": {"rope_scaling", map[string]any{"type": "default"},
			func(c *LlamaConfig) any { return c.RopeTheta }, 1e6},
		"tied":         {"tie_word_embeddings", true, func(c *LlamaConfig) any { return c.Tied }, true},
		"wide heads":   {"head_dim", 64, func(c *LlamaConfig) any { return c.HeadDim }, 64},
		"grouped":      {"num_key_value_heads", 1, func(c *LlamaConfig) any { return c.KVHeads }, 1},
		"unknown null": {"novelty", nil, func(c *LlamaConfig) any { return c.Layers }, 2},
		"unknown off":  {"novelty", false, func(c *LlamaConfig) any { return c.Layers }, 2},
		"no dropout":   {"attention_dropout", 0.0, func(c *LlamaConfig) any { return c.Layers }, 2},
	} {
		m := plain()
		m[c.key] = c.v
		if v := c.pick(parseLlama(t, m)); v != c.want {
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
		{"rope_scaling", map[string]any{"type": "linear"}, "rope_scaling.factor is missing"},
		{"rope_scaling", map[string]any{"type": "linear", "factor": -2}, "rope_scaling.factor = -2"},
		{"rope_scaling", map[string]any{"type": "ropes", "factor": 2, "short_factor": []float64{1}},
			"rope_scaling.rope_type = ropes"},
		{"rope_scaling", map[string]any{"type": "longrope", "factor": 2, "short_factor": []float64{1}},
			"rope_scaling.long_factor is missing"},
		{"rope_scaling", map[string]any{"type": "longrope", "factor": 2, "short_factor": []float64{1},
			"long_factor": []float64{1}}, "rope_scaling.short_factor has 1 numbers for"},
		{"rope_scaling", map[string]any{"type": "linear", "rope_type": "yarn", "factor": 2},
			"rope_scaling.type = linear"},
		{"rope_scaling", map[string]any{"type": "linear", "factor": 2, "low_freq_factor": 1},
			"rope_scaling.low_freq_factor = 1 is a setting"},
		{"rope_scaling", map[string]any{"type": "yarn", "factor": 2, "truncate": false},
			"rope_scaling.truncate = false"},
		{"rope_scaling", map[string]any{"type": "yarn", "factor": 2, "beta_fast": 1, "beta_slow": 2},
			"beta_fast = 1 is less than"},
		{"rope_scaling", map[string]any{"type": "llama3", "factor": 2, "low_freq_factor": 4, "high_freq_factor": 4},
			"high_freq_factor = 4 is not above"},
		{"rope_parameters", map[string]any{"rope_theta": 7.5},
			"rope_parameters.rope_theta = 7.5 is not the rope_theta = 1e+06"},
		{"rope_scaling", map[string]any{"factor": 2.0}, "rope_scaling.factor"},
		{"rope_parameters", map[string]any{"rope_type": "llama3"}, "rope_parameters.low_freq_factor is missing"},
		{"rope_scaling", "none", "rope_scaling"},
		{"partial_rotary_factor", 0.5, "partial_rotary_factor = 0.5"},
		{"rope_theta", -1.0, "rope_theta = -1"},
		{"rms_norm_eps", 0.0, "rms_norm_eps = 0"},
		{"use_sliding_window", true, "use_sliding_window = true"},
		{"sliding_window", 4096, "sliding_window = 4096 is a setting"},
		{"layer_types", []string{"sliding_attention"}, "layer_types has 1 entries, num_hidden_layers = 2"},
		{"layer_types", []string{"full_attention", "sliding_attention"}, "no sliding_window is in use"},
		{"layer_types", []string{"full_attention", "chunked_attention"}, "layer_types has \"chunked_attention\""},
		{"quantization_config", map[string]any{"bits": 4}, "quantization_config"},
		{"auto_map", map[string]any{"AutoModel": "x.Y"}, "auto_map"},
		{"novelty", 1, "novelty = 1"},
		{"eos_token_id", 100, "eos_token_id = 100 is outside of the vocabulary"},
		{"eos_token_id", "end", "eos_token_id"},
		{"bos_token_id", -2, "bos_token_id = -2 is outside of the vocabulary"},
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

// A configuration of each architecture, by what transformers does with it.
func TestSlidingWindowsFollowTheArchitecture(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings map[string]any
		window   int
		layers   []bool
	}{
		{"mistral", map[string]any{"model_type": "mistral"}, 4096, nil},
		{"mistral without", map[string]any{"model_type": "mistral", "sliding_window": nil}, 0, nil},
		{"qwen3", map[string]any{"model_type": "qwen3", "sliding_window": 8}, 0, nil},
		{"qwen3, last layer", map[string]any{"model_type": "qwen3", "use_sliding_window": true, "sliding_window": 8,
			"max_window_layers": 1}, 8, []bool{false, true}},
		{"qwen3, all layers", map[string]any{"model_type": "qwen3", "use_sliding_window": true, "sliding_window": 8,
			"max_window_layers": 0}, 8, nil},
		{"qwen3, no layer", map[string]any{"model_type": "qwen3", "use_sliding_window": true}, 0, nil},
		{"qwen3, named", map[string]any{
			"model_type": "qwen3", "use_sliding_window": true, "sliding_window": 8,
			"layer_types": []string{"sliding_attention", "full_attention"},
		}, 8, []bool{true, false}},
	} {
		m := plain()
		delete(m, "architectures")
		delete(m, "mlp_bias")
		maps.Copy(m, map[string]any{"num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64})
		maps.Copy(m, c.settings)
		got := parseLlama(t, m)
		if got.Window != c.window || !slices.Equal(got.WindowLayers, c.layers) {
			t.Errorf("%s: window %d in layers %v, want %d in %v",
				c.name, got.Window, got.WindowLayers, c.window, c.layers)
		}
		if m["model_type"] == "mistral" {
			other := layerType(c.window == 0)
			m["layer_types"] = []string{other, other}
			if _, err := parseMap(t, m); err == nil || !strings.Contains(err.Error(), "layer_types has "+other) {
				t.Errorf("%s with %s: error %v", c.name, other, err)
			}
		}
	}
}

// The numbers that transformers derives where a config leaves them out.
func TestScaledRopeDefaults(t *testing.T) {
	ln16 := math.Log(16)
	ones, twos := []float64{1, 1, 1, 1}, []float64{2, 2, 2, 2}
	for _, c := range []struct {
		settings map[string]any
		want     RopeScaling
	}{
		{map[string]any{"type": "linear", "factor": 2}, RopeScaling{Type: "linear", Factor: 2}},
		{map[string]any{"type": "dynamic", "factor": 2}, RopeScaling{
			Type: "dynamic", Factor: 2, OriginalPositions: 4096,
		}},
		{map[string]any{"type": "longrope", "original_max_position_embeddings": 256, "short_factor": ones,
			"long_factor": twos}, RopeScaling{
			Type: "longrope", Factor: 16, OriginalPositions: 256, AttentionFactor: math.Sqrt(1.5), ShortFactor: ones,
			LongFactor: twos,
		}},
		{map[string]any{"rope_type": "yarn", "factor": 16}, RopeScaling{
			Type: "yarn", Factor: 16, OriginalPositions: 4096, AttentionFactor: 0.1*ln16 + 1, BetaFast: 32, BetaSlow: 1,
		}},
		{map[string]any{"rope_type": "yarn", "factor": 16, "mscale": 2, "mscale_all_dim": 1, "beta_fast": 20},
			RopeScaling{
				Type: "yarn", Factor: 16, OriginalPositions: 4096, AttentionFactor: (0.2*ln16 + 1) / (0.1*ln16 + 1),
				BetaFast: 20, BetaSlow: 1,
			}},
		{map[string]any{"rope_type": "yarn", "original_max_position_embeddings": 1024, "attention_factor": 1},
			RopeScaling{
				Type: "yarn", Factor: 4, OriginalPositions: 1024, AttentionFactor: 1, BetaFast: 32, BetaSlow: 1,
			}},
		{map[string]any{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
			"original_max_position_embeddings": 512}, RopeScaling{
			Type: "llama3", Factor: 8, OriginalPositions: 512, LowFreq: 1, HighFreq: 4,
		}},
	} {
		m := plain()
		m["rope_scaling"], m["max_position_embeddings"] = c.settings, 4096
		got := parseLlama(t, m)
		if !reflect.DeepEqual(got.RopeScaling, c.want) {
			t.Errorf("%v: %+v, want %+v", c.settings, got.RopeScaling, c.want)
		}
		again, err := parseMap(t, got.settings())
		if err != nil || !reflect.DeepEqual(again.(*LlamaConfig).RopeScaling, got.RopeScaling) {
			t.Errorf("%v: came back as %+v, %v", c.settings, again, err)
		}
	}
}

// plainGPT2 is the config.json of GPT-2 as OpenAI's weights come with, but small.
func plainGPT2() map[string]any {
	return map[string]any{
		"model_type": "gpt2", "architectures": []string{"GPT2LMHeadModel"}, "vocab_size": 100, "n_embd": 32,
		"n_layer": 2, "n_head": 4, "n_positions": 64, "n_ctx": 64, "activation_function": "gelu_new",
		"layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "attn_pdrop": 0.1, "resid_pdrop": 0.1, "embd_pdrop": 0.1,
		"bos_token_id": 99, "eos_token_id": 99, "summary_type": "cls_index", "summary_proj_to_labels": true,
		"summary_use_proj": true, "summary_activation": nil,
		"summary_first_dropout": 0.1,
		"task_specific_params":  map[string]any{"text-generation": map[string]any{"max_length": 50}},
	}
}

func TestGPT2Config(t *testing.T) {
	got, err := parseMap(t, plainGPT2())
	want := &GPT2Config{
		VocabSize: 100, HiddenSize: 32, FFNSize: 128, Layers: 2, Heads: 4, MaxPositions: 64, NormEps: 1e-5, Tied: true,
		InitStd: 0.02,
		Tokens:  Tokens{BOS: 99, Pad: -1, EOS: []int{99}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("config = %+v, %v, want %+v", got, err, want)
	}
	for _, c := range []struct {
		key  string
		v    any
		want string
	}{
		{"activation_function", "gelu", "activation_function = gelu"},
		{"scale_attn_weights", false, "scale_attn_weights = false"},
		{"scale_attn_by_inverse_layer_idx", true, "scale_attn_by_inverse_layer_idx = true"},
		{"reorder_and_upcast_attn", true, "reorder_and_upcast_attn = true"},
		{"add_cross_attention", true, "add_cross_attention = true"},
		{"n_ctx", 32, "n_ctx = 32"},
		{"n_inner", 0, "n_inner = 0"},
		{"n_head", 5, "n_head = 5 does not divide n_embd = 32"},
		{"layer_norm_epsilon", 0, "layer_norm_epsilon = 0"},
		{"rope_theta", 1e4, "rope_theta = 10000 is a setting"},
		{"sliding_window", 8, "sliding_window = 8 is a setting"},
	} {
		m := plainGPT2()
		m[c.key] = c.v
		if _, err := parseMap(t, m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %v: error %v, want one that says %q", c.key, c.v, err, c.want)
		}
	}
}

// FuzzConfig: no panic, and whatever is accepted is valid. The parser may allocate 64 bytes for each byte, and 64 KiB.
func FuzzConfig(f *testing.F) {
	text, err := json.Marshal(plain())
	if err != nil {
		f.Fatal(err)
	}
	gpt2, err := json.Marshal(plainGPT2())
	if err != nil {
		f.Fatal(err)
	}
	gemma, err := json.Marshal(plainGemma())
	if err != nil {
		f.Fatal(err)
	}
	experts, err := json.Marshal(plainMoE())
	if err != nil {
		f.Fatal(err)
	}
	files := [][]byte{
		text, gpt2, gemma, experts, []byte(
			`{"model_type":"qwen3","rope_parameters":{"rope_theta":1,"rope_type":"yarn"},"use_sliding_window":true}`),
		[]byte(`{"model_type":"mistral","num_hidden_layers":1,"layer_types":["sliding_attention"]}`), []byte(`null`),
	}
	for i := range files {
		f.Add(uint8(i), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		text := filetest.Edit(t, files[int(which)%len(files)], edits)
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
