package model

import (
	"strings"
	"testing"

	sparse "anneal/attention"
)

// Every family can be declared, and a shape without a model is refused with a sentence instead of an index out of
// range.
func TestOnlyModelsThatExistAreDeclared(t *testing.T) {
	small := Config{
		Layers: 1, Dim: 8, Heads: 4, KVHeads: 2, HeadDim: 2, FFN: 8, Context: 8, Vocab: 8,
		Experts: 2, ExpertsPerToken: 1, ExpertFFN: 4,
	}
	for _, family := range append(families, "") {
		c := small
		if c.Family = family; c.Validate() != nil || Declare(c).Count() < 1 {
			t.Errorf("the family %q: %v", family, c.Validate())
		}
	}
	for want, change := range map[string]func(c *Config){
		`no family "nonsense"`:  func(c *Config) { c.Family = "nonsense" },
		"Layers = -1":           func(c *Config) { c.Layers = -1 },
		"Dim = 0":               func(c *Config) { c.Dim = 0 },
		"Heads = 0":             func(c *Config) { c.Heads = 0 },
		"does not divide Heads": func(c *Config) { c.KVHeads = 3 },
		"FFN = 0":               func(c *Config) { c.FFN = 0 },
		"ExpertsPerToken = 0":   func(c *Config) { c.Family, c.ExpertsPerToken = "qwen3_moe", 0 },
		"needs two heads": func(c *Config) {
			c.Heads, c.KVHeads, c.Attention = 1, 1, sparse.Patterns{sparse.Strided{Stride: 2}}
		},
	} {
		c := small
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, want) {
					t.Errorf("Declare panics with %q, want %s", text, want)
				}
			}()
			Declare(c)
		}()
	}
}
