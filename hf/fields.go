package hf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// fields holds the settings of a config.json that were not taken yet.
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

// must takes a required setting.
func (f *fields) must(name string, dst any) {
	_, present := f.raw[name]
	before := len(f.errs)
	if !f.take(name, dst) && len(f.errs) == before {
		if present {
			f.fail("%s = null; a value is needed", name)
		} else {
			f.fail("%s is missing", name)
		}
	}
}

// only takes a setting for which this module supports a single value.
func only[T comparable](f *fields, name string, value T) {
	got := value
	if f.take(name, &got) && got != value {
		f.fail("%s = %.60s is not supported, only %v", name, fmt.Sprint(got), value)
	}
}

// class takes the class of the model, which must match the model_type.
func (f *fields) class(want string) {
	var architectures []string
	if f.take("architectures", &architectures) && !slices.Equal(architectures, []string{want}) {
		f.fail("architectures = %.120q is not supported, only %q", architectures, want)
	}
}

// tokens takes the special token ids; a missing one has its default, null means none.
func (f *fields) tokens(t Tokens) Tokens {
	for _, id := range []struct {
		name string
		dst  *int
	}{{"bos_token_id", &t.BOS}, {"pad_token_id", &t.Pad}} {
		if _, given := f.raw[id.name]; given {
			*id.dst = -1
			f.take(id.name, id.dst)
		}
	}
	raw, given := f.raw["eos_token_id"]
	if !given {
		return t
	}
	t.EOS = nil
	var one int
	if json.Unmarshal(raw, &one) == nil && f.take("eos_token_id", &one) {
		t.EOS = []int{one}
	} else {
		f.take("eos_token_id", &t.EOS)
	}
	return t
}

// harmless lists settings about training, generation or storage that do not affect what the model computes. Gemma has
// cache_implementation, SmolLM has is_llama_config, and models published by Unsloth have unsloth_….
var harmless = []string{
	"_name_or_path", "_attn_implementation_autoset", "_num_labels", "attention_dropout", "cache_implementation",
	"chunk_size_feed_forward", "dtype", "id2label", "is_llama_config", "label2id", "max_sequence_length",
	"output_attentions", "output_hidden_states", "output_past", "pretraining_tp", "return_dict",
	"task_specific_params", "torch_dtype", "transformers.js_config", "transformers_version", "unsloth_fixed",
	"unsloth_version", "use_cache",
}

// rest fails on settings that were not taken, unless they are known to be harmless or are null or false.
func (f *fields) rest(harmless []string) {
	var names []string
	for name, raw := range f.raw {
		off := bytes.Equal(raw, []byte("null")) || bytes.Equal(raw, []byte("false"))
		if !off && !slices.Contains(harmless, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		f.fail("%s = %.60s is a setting that anneal does not know", name, f.raw[name])
	}
}

// parseConfig reads a config.json.
func parseConfig(text []byte) (Config, error) {
	f := &fields{}
	if err := json.Unmarshal(text, &f.raw); err != nil {
		return nil, err
	}
	var modelType string
	f.must("model_type", &modelType)
	var c Config
	known := harmless
	switch modelType {
	case "llama", "qwen2", "qwen3", "mistral":
		c = f.parseLlama(modelType)
	case "qwen3_moe":
		c = f.parseQwen3MoE()
	case "mixtral":
		c = f.parseMixtral()
	case "olmo2":
		c = f.parseOlmo2()
	case "phi3":
		c, known = f.parsePhi3(), slices.Concat(harmless, phi3Harmless)
	case "gemma2":
		c = f.parseGemma2()
	case "gemma3_text":
		c = f.parseGemma3()
	case "gpt2":
		c, known = f.parseGPT2(), slices.Concat(harmless, gpt2Harmless)
	default: // in other classes, fields have other meanings
		if len(f.errs) == 0 {
			f.fail("model_type = %.60q is not supported, only gemma2, gemma3_text, gpt2, llama, mistral, mixtral, "+
				"olmo2, phi3, qwen2, qwen3 and qwen3_moe", modelType)
		}
		return nil, errors.Join(f.errs...)
	}
	f.rest(known)
	if len(f.errs) == 0 {
		f.errs = append(f.errs, c.Validate())
	}
	return c, errors.Join(f.errs...)
}
