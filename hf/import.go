package hf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"anneal/safetensors"
)

// Model is an open model directory. Weights holds exactly the tensors that LlamaTensors(Config) lists, in whatever dtype
// the file has; safetensors.ReadFloat32 reads them.
type Model struct {
	Config  LlamaConfig
	Weights *safetensors.Set
}

// Open reads and checks the config of a model directory and opens its weights.
func Open(dir string) (*Model, error) {
	c, err := ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	w, err := safetensors.OpenDir(dir)
	if err != nil {
		return nil, fmt.Errorf("hf: %w", err)
	}
	if err := match(c, w.Tensors()); err != nil {
		w.Close()
		return nil, fmt.Errorf("hf: the weights in %s do not fit its config.json:\n  %w", dir, err)
	}
	return &Model{c, w}, nil
}

// Close closes the weights.
func (m *Model) Close() error { return m.Weights.Close() }

const maxConfig = 1 << 20 // bytes

// ReadConfig reads config.json in dir. What this module cannot represent exactly (biases, scaled RoPE, sliding windows,
// quantised weights, other architectures, unknown settings) is an error that names the field.
func ReadConfig(dir string) (LlamaConfig, error) {
	path := filepath.Join(dir, "config.json")
	f, err := os.Open(path)
	if err != nil {
		return LlamaConfig{}, fmt.Errorf("hf: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return LlamaConfig{}, fmt.Errorf("hf: %w", err)
	}
	if len(text) > maxConfig {
		return LlamaConfig{}, fmt.Errorf("hf: %s is larger than %d bytes", path, maxConfig)
	}
	c, err := parseConfig(text)
	if err != nil {
		return LlamaConfig{}, fmt.Errorf("hf: %s:\n%w", path, err)
	}
	return c, nil
}

// fields are the settings of a config.json that were not taken yet.
type fields struct {
	raw  map[string]json.RawMessage
	errs []error
}

// take decodes a setting into dst and reports whether it was there and not null.
func (f *fields) take(name string, dst any) bool {
	raw, ok := f.raw[name]
	delete(f.raw, name)
	if !ok || bytes.Equal(raw, []byte("null")) {
		return false
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		f.fail("%s = %.60s has the wrong type", name, raw)
		return false
	}
	return true
}

func (f *fields) fail(format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf(format, args...))
}

// must takes a setting that has no default.
func (f *fields) must(name string, dst any) {
	_, present := f.raw[name]
	before := len(f.errs)
	if !f.take(name, dst) && len(f.errs) == before {
		if present {
			f.fail("%s = null; a number is due", name)
		} else {
			f.fail("%s is missing", name)
		}
	}
}

// only takes a setting of which this module knows a single value.
func only[T comparable](f *fields, name string, value T) {
	got := value
	if f.take(name, &got) && got != value {
		f.fail("%s = %v is not supported, only %v", name, got, value)
	}
}

// harmless settings say how to train, generate or store, and nothing about what the model computes.
var harmless = []string{
	"_name_or_path", "_attn_implementation_autoset", "attention_dropout", "chunk_size_feed_forward", "dtype",
	"id2label", "label2id", "max_window_layers", "output_attentions", "output_hidden_states", "pretraining_tp",
	"return_dict", "sliding_window", "task_specific_params", "torch_dtype", "transformers_version", "use_cache",
}

func parseConfig(text []byte) (LlamaConfig, error) {
	f := &fields{}
	if err := json.Unmarshal(text, &f.raw); err != nil {
		return LlamaConfig{}, err
	}
	c := LlamaConfig{BOS: -1, Pad: -1, MaxPositions: 2048, NormEps: 1e-6, RopeTheta: 10000, InitStd: 0.02}
	var modelType string
	f.must("model_type", &modelType)
	switch {
	case modelType == "qwen3":
		c.QKNorm = true
	case modelType != "llama" && len(f.errs) == 0:
		f.fail("model_type = %q is not supported, only llama and qwen3", modelType)
	}
	if len(f.errs) > 0 {
		return LlamaConfig{}, errors.Join(f.errs...) // other fields mean other things elsewhere
	}
	var architectures []string
	if class, _ := c.architecture(); f.take("architectures", &architectures) && !slices.Equal(architectures, []string{class}) {
		f.fail("architectures = %q is not supported, only %q", architectures, class)
	}
	f.sizes(&c)
	f.tokens(&c)
	f.rope(&c)
	f.take("rms_norm_eps", &c.NormEps)
	f.take("initializer_range", &c.InitStd)
	f.take("tie_word_embeddings", &c.Tied)
	only(f, "hidden_act", "silu")
	only(f, "attention_bias", false)
	only(f, "mlp_bias", false)
	only(f, "use_sliding_window", false)
	var layerTypes []string
	f.take("layer_types", &layerTypes)
	for _, t := range layerTypes {
		if t != "full_attention" {
			f.fail("layer_types has %q; only full_attention is supported", t)
			break
		}
	}
	f.rest()
	if len(f.errs) == 0 {
		f.errs = append(f.errs, c.Validate())
	}
	return c, errors.Join(f.errs...)
}

func (f *fields) sizes(c *LlamaConfig) {
	f.must("vocab_size", &c.VocabSize)
	f.must("hidden_size", &c.HiddenSize)
	f.must("intermediate_size", &c.FFNSize)
	f.must("num_hidden_layers", &c.Layers)
	f.must("num_attention_heads", &c.Heads)
	f.take("max_position_embeddings", &c.MaxPositions)
	if c.QKNorm { // where Qwen3's defaults are fixed numbers that rarely fit
		f.must("num_key_value_heads", &c.KVHeads)
		f.must("head_dim", &c.HeadDim)
		return
	}
	if !f.take("num_key_value_heads", &c.KVHeads) {
		c.KVHeads = c.Heads
	}
	if !f.take("head_dim", &c.HeadDim) && c.Heads > 0 {
		c.HeadDim = c.HiddenSize / c.Heads
	}
}

// tokens takes the special token ids. A Llama that says nothing of them means 1 and 2; null means none.
func (f *fields) tokens(c *LlamaConfig) {
	_, hasBOS := f.raw["bos_token_id"]
	if !f.take("bos_token_id", &c.BOS) && !hasBOS && !c.QKNorm {
		c.BOS = 1
	}
	f.take("pad_token_id", &c.Pad)
	raw, hasEOS := f.raw["eos_token_id"]
	var one int
	switch {
	case !hasEOS && !c.QKNorm:
		c.EOS = []int{2}
	case json.Unmarshal(raw, &one) == nil && f.take("eos_token_id", &one):
		c.EOS = []int{one}
	default:
		f.take("eos_token_id", &c.EOS)
	}
}

// rope takes the base of RoPE from where transformers 5 (rope_parameters) or 4 (rope_theta) puts it.
func (f *fields) rope(c *LlamaConfig) {
	hasTheta := f.take("rope_theta", &c.RopeTheta)
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		inner := &fields{}
		if !f.take(name, &inner.raw) {
			continue
		}
		only(inner, "rope_type", "default")
		only(inner, "type", "default")
		only(inner, "partial_rotary_factor", 1.0)
		hasTheta = inner.take("rope_theta", &c.RopeTheta) || hasTheta
		inner.rest()
		for _, err := range inner.errs {
			f.fail("%s.%w", name, err)
		}
	}
	only(f, "partial_rotary_factor", 1.0)
	if c.QKNorm && !hasTheta {
		f.fail("rope_theta is missing, in rope_parameters too")
	}
}

// rest fails on settings that nobody took, unless they are known to be harmless or are null or false.
func (f *fields) rest() {
	var names []string
	for name, raw := range f.raw {
		off := bytes.Equal(raw, []byte("null")) || bytes.Equal(raw, []byte("false"))
		if !off && !slices.Contains(harmless, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		f.fail("%s = %.60s is a setting that this program does not know", name, f.raw[name])
	}
}
