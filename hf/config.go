package hf

import (
	"errors"
	"fmt"
	"math"
)

// Config describes a model in the terms of its config.json: a *LlamaConfig, *GPT2Config, *Gemma2Config, *Gemma3Config,
// *MixtralConfig, *Olmo2Config, *Phi3Config or *Qwen3MoEConfig.
type Config interface {
	// Class returns the class that transformers loads the model with, such as LlamaForCausalLM.
	Class() string
	// Validate reports every invalid field, by its name in config.json.
	Validate() error
	// Tensors lists every tensor of the model.
	Tensors() []Spec
	// Notes says which older versions of transformers do not read the exported model, or compute something else.
	Notes() []string

	size() (vocab, positions int)
	tokens() Tokens
	settings() map[string]any // fields of config.json, without those that every model has
	tiedHead() bool           // lm_head.weight is left out because it is the embedding, embedding()
	embedding() string
	derived(name string) bool // a buffer in files of old versions that can be derived from the config
}

// Tokens are the ids of special tokens, -1 for none.
type Tokens struct {
	BOS int   `json:"bos"`
	Pad int   `json:"pad"`
	EOS []int `json:"eos"` // that end a text
}

// EndOfText returns the ids of the tokens that end a text, in the form of config.json.
func EndOfText(c Config) []int { return c.tokens().EOS }

// Limits on the values of a config.json. They keep products of two sizes, and lists of names, in bounds.
const (
	maxSize   = 1 << 24
	maxLayers = 10_000
)

// checker collects the mistakes in a config.
type checker struct{ errs []error }

func (k *checker) bad(format string, args ...any) {
	k.errs = append(k.errs, fmt.Errorf(format, args...))
}

func (k *checker) err() error { return errors.Join(k.errs...) }

// size checks 1 ≤ n ≤ high.
func (k *checker) size(name string, n, high int) {
	if n < 1 || n > high {
		k.bad("%s = %d is not between 1 and %d", name, n, high)
	}
}

func (k *checker) positive(name string, x float64) {
	if !(x > 0) || math.IsInf(x, 0) {
		k.bad("%s = %v is not a positive number", name, x)
	}
}

func (k *checker) std(x float64) {
	if !(x >= 0 && x <= 1) {
		k.bad("initializer_range = %v is not between 0 and 1", x)
	}
}

func (k *checker) ids(t Tokens, vocab int) {
	check := func(name string, id int) {
		if id < -1 || id >= vocab {
			k.bad("%s = %d is outside of the vocabulary of %d", name, id, vocab)
		}
	}
	check("bos_token_id", t.BOS)
	for _, id := range t.EOS {
		check("eos_token_id", id)
	}
	check("pad_token_id", t.Pad)
}
