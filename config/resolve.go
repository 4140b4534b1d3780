package config

import (
	"fmt"
	"math"
	"reflect"
	"strconv"

	"anneal/model"
)

// microBatchTokens is the size beyond which larger micro-batches bring nothing: matrix products are at full speed, and
// activations already exceed the caches.
const microBatchTokens = 4096

// Resolve fills in values that were not given, by the rules in Keys. The vocabulary stays 0 until Derive is called
// with the data's. Validate reports values that cannot work.
func (c *Config) Resolve() {
	m := &c.Model
	c.resolveFamily()
	c.derive("model.kv_heads", m.Heads)
	if m.Heads > 0 {
		c.derive("model.head_dim", m.Dim/m.Heads)
	}
	c.derive("model.ffn", derivedFFN(m, m.Dim))
	c.resolveExperts()
	c.resolveLoRA()
	c.resolveLatent()
	c.resolvePositions()
	if m.MuP {
		c.resolveMuP()
	}
	c.resolveAttention()
	if m.Context > 0 {
		c.derive("train.micro_batch", c.microBatchFor())
	}
	c.resolveOptimizer()
	c.resolveSchedule()
	c.resolveParallel()
}

// derivedFFN returns the hidden width of the feed-forward layer for a width: 4·dim with two matrices; with three
// matrices, the width with about as many parameters.
func derivedFFN(m *model.Config, dim int) int {
	if m.Activation == "swiglu" || m.Activation == "geglu" {
		return (dim*8/3 + 63) / 64 * 64
	}
	return 4 * dim
}

// microBatch returns the largest divisor of sequences with at most microBatchTokens tokens and at most most, and at
// least 1.
func microBatch(sequences, context, most int) int {
	for n := min(microBatchTokens/context, sequences, most); n > 1; n-- {
		if sequences%n == 0 {
			return n
		}
	}
	return 1
}

// derive sets an integer key that is still 0, with its own rule as the origin.
func (c *Config) derive(name string, n int) {
	k := allKeys[keyIndex[name]]
	if v := reflect.ValueOf(c).Elem().FieldByIndex(k.index); v.Int() == 0 && n > 0 {
		c.Derive(name, n, k.Rule)
	}
}

// deriveNumber sets a key that is still NaN; rule becomes its origin.
func (c *Config) deriveNumber(name string, x float64, rule string) {
	k := allKeys[keyIndex[name]]
	if v := reflect.ValueOf(c).Elem().FieldByIndex(k.index); math.IsNaN(v.Float()) {
		if err := c.set(k, number(x), Origin{Rule: rule}); err != nil {
			panic("config: " + err.Error())
		}
	}
}

// Derive sets an integer key to n; rule, by which n was derived, becomes its origin. It panics on an unknown key.
func (c *Config) Derive(key string, n int, rule string) { c.DeriveText(key, strconv.Itoa(n), rule) }

// DeriveText is Derive for a key of any type, with the value as the config file writes it.
func (c *Config) DeriveText(key, value, rule string) {
	i, ok := keyIndex[key]
	if !ok {
		panic(fmt.Sprintf("config: Derive(%q): no such key", key))
	}
	if err := c.set(allKeys[i], value, Origin{Rule: rule}); err != nil {
		panic("config: Derive: " + err.Error())
	}
}
