package config

import (
	"fmt"
	"math"
)

// resolvePositions derives the original context of scaled rotary positions.
func (c *Config) resolvePositions() {
	m := &c.Model
	if s := m.RopeScaling; s.NeedsOriginal() {
		c.derive("model.rope_original_context", max(int(math.Round(float64(m.Context)/s.Factor)), 1))
	}
}

// positions checks the schemes of the layers, and the keys of rotary positions.
func (k *checker) positions() {
	m := &k.c.Model
	k.number("model.rope_theta", m.RopeTheta, 1, 1e12, "()")
	if m.RopeThetaLocal != 0 {
		k.number("model.rope_theta_local", m.RopeThetaLocal, 1, 1e12, "()")
	}
	if m.RopeScaling.NeedsOriginal() {
		k.between("model.rope_original_context", m.RopeOriginalContext, 1, 1<<24)
	}
	if err := m.RopeScaling.CheckPairs(m.RotatedDim()); err != nil {
		k.fault("model.rope_scaling", "model.rope_scaling = yarn:4, or a list of that length", "%v", err)
	}
	if n := len(m.Positions); n > m.Layers && m.Layers > 0 {
		k.fault("model.positions", fmt.Sprintf("model.layers = %d", n),
			"model.positions lists %d schemes for %d layers", n, m.Layers)
	}
}

// headDim checks the size of a head, which must be even for rotary positions.
func (k *checker) headDim() {
	m := &k.c.Model
	given := k.c.origins["model.head_dim"].Rule == ""
	if !given && m.Dim%m.Heads != 0 {
		k.fault("model.heads", headsHint(m), "model.heads = %d does not divide model.dim = %d", m.Heads, m.Dim)
		return
	}
	if !k.between("model.head_dim", m.HeadDim, 1, 1<<14) || m.HeadDim%2 == 0 || !m.HasPositions("rope") {
		return
	}
	key := "model.heads"
	if given {
		key = "model.head_dim"
	}
	k.fault(key, fmt.Sprintf("model.head_dim = %d, or model.positions = alibi", m.HeadDim+1),
		"a head of %d elements is odd, but rotary positions need pairs", m.HeadDim)
}
