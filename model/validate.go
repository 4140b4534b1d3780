package model

import (
	"fmt"
	"slices"
	"strings"

	sparse "anneal/attention"
)

// families are the names that Config.Family may have; "" is llama.
var families = []string{"llama", "gpt2", "anneal", "olmo2", "phi3", "gemma2", "gemma3", "qwen3_moe"}

// Validate returns an error if no model can be declared of this shape: an unknown family, a size below 1, key-value
// heads that do not divide the heads, or patterns that do not fit the context. It sets no limits and derives nothing:
// package config does both for a run's configuration.
func (c Config) Validate() error {
	if c.Family != "" && !slices.Contains(families, c.Family) {
		return fmt.Errorf("model: there is no family %q\n  try one of %s", c.Family, strings.Join(families, ", "))
	}
	for _, size := range c.sizes() {
		if size.n < 1 {
			return fmt.Errorf("model: %s = %d is not a size\n  try 1 or more", size.name, size.n)
		}
	}
	if c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("model: KVHeads = %d does not divide Heads = %d\n  try KVHeads: %d",
			c.KVHeads, c.Heads, c.Heads)
	}
	if err := sparse.CheckLayers(c.Attention, c.Context, c.Heads, c.Layers); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	return nil
}

// size is a field that says how large a part of the model is.
type size struct {
	name string
	n    int
}

func (c Config) sizes() []size {
	list := []size{
		{"Layers", c.Layers}, {"Dim", c.Dim}, {"Heads", c.Heads}, {"KVHeads", c.KVHeads}, {"HeadDim", c.HeadDim},
		{"Context", c.Context}, {"Vocab", c.Vocab},
	}
	if c.Family == "qwen3_moe" {
		return append(list, size{"Experts", c.Experts}, size{"ExpertsPerToken", c.ExpertsPerToken},
			size{"ExpertFFN", c.ExpertFFN})
	}
	return append(list, size{"FFN", c.FFN})
}
