package config

import (
	"errors"
	"fmt"
	"math"

	"anneal/model"
	"anneal/nn"
)

// resolvePositions derives the original context of scaled rotary positions.
func (c *Config) resolvePositions() {
	m := &c.Model
	if s, err := nn.ParseRoPEScaling(m.RopeScaling); err == nil && s.NeedsOriginal() {
		c.derive("model.rope_original_context", max(int(math.Round(float64(m.Context)/s.Factor)), 1))
	}
}

// Scaling returns the scaling of the rotary positions of a valid model.
func (m *Model) Scaling() nn.RoPEScaling {
	s, err := nn.ParseRoPEScaling(m.RopeScaling)
	if err != nil {
		panic("config: " + err.Error())
	}
	s.Original = m.RopeOriginalContext
	return s
}

// positions checks the schemes of the layers, and what the rotary ones read.
func (k *checker) positions() {
	m := &k.c.Model
	schemes, err := model.ParsePositions(m.Positions)
	if m.Positions == "" {
		err = errors.New("it names no scheme")
	}
	if err != nil {
		k.fault("model.positions", "model.positions = rope, alibi, learned or none, or a list such as [rope, rope, rope, none]", "model.positions = %q: %v", m.Positions, err)
	}
	s, err := nn.ParseRoPEScaling(m.RopeScaling)
	if err != nil {
		k.fault("model.rope_scaling", "model.rope_scaling = yarn:4, or none", "model.rope_scaling = %q: %v", m.RopeScaling, err)
	}
	k.number("model.rope_theta", m.RopeTheta, 1, 1e12, "()")
	if s.NeedsOriginal() {
		k.between("model.rope_original_context", m.RopeOriginalContext, 1, 1<<24)
	}
	if len(schemes) > m.Layers && m.Layers > 0 {
		k.fault("model.positions", fmt.Sprintf("model.layers = %d", len(schemes)), "model.positions lists %d schemes for %d layers", len(schemes), m.Layers)
	}
}

// headDim checks the size of a head, which rotary positions need even.
func (k *checker) headDim() {
	m := &k.c.Model
	given := k.c.origins["model.head_dim"].Rule == ""
	if !given && m.Dim%m.Heads != 0 {
		k.fault("model.heads", headsHint(m), "model.heads = %d does not divide model.dim = %d", m.Heads, m.Dim)
		return
	}
	if !k.between("model.head_dim", m.HeadDim, 1, 1<<14) || m.HeadDim%2 == 0 || !m.Rotates() {
		return
	}
	key := "model.heads"
	if given {
		key = "model.head_dim"
	}
	k.fault(key, fmt.Sprintf("model.head_dim = %d, or model.positions = alibi", m.HeadDim+1), "a head of %d elements is odd, but rotary positions need pairs", m.HeadDim)
}
