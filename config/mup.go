package config

import (
	"slices"
	"strings"
)

// mupOptimizers lists the optimizers whose steps grow with the width in a known way: in proportion to the rate, or to
// the gradient.
var mupOptimizers = []string{"adamw", "adam", "adam8bit", "lion", "ademamix", "muon", "sgd"}

// resolveMuP derives the base model of muP from its width. It uses only values, not their origins, so that resolving a
// resolved config gives the same result.
func (c *Config) resolveMuP() {
	m := &c.Model
	c.derive("model.mup_base_head_dim", m.HeadDim)
	switch {
	case m.FFN == derivedFFN(m, m.Dim):
		c.derive("model.mup_base_ffn", derivedFFN(m, m.MuPBaseDim))
	case m.Dim > 0:
		c.derive("model.mup_base_ffn", m.FFN*m.MuPBaseDim/m.Dim)
	}
}

// mup checks the base model.
func (k *checker) mup() {
	m := &k.c.Model
	if !m.MuP {
		return
	}
	if familyOf(m.Family).standard {
		k.fault("model.mup", "model.mup = false, or model.family = llama",
			"model.mup has no rule for model.family = %s", m.Family)
	}
	if m.ScoreDim != 0 {
		k.fault("model.score_dim", "model.mup_base_head_dim, or model.mup = false",
			"model.score_dim = %d does not work with model.mup, which scales the scores itself", m.ScoreDim)
	}
	if k.between("model.mup_base_dim", m.MuPBaseDim, 1, 1<<18) { // else values derived from it would be reported
		k.between("model.mup_base_ffn", m.MuPBaseFFN, 1, 1<<20)
	}
	k.between("model.mup_base_head_dim", m.MuPBaseHeadDim, 1, 1<<14)
	k.between("model.mup_base_layers", m.MuPBaseLayers, 0, 1<<12)
	k.number("model.mup_input_scale", m.MuPInputScale, 0, 1e6, "()")
	k.number("model.mup_output_scale", m.MuPOutputScale, 0, 1e6, "()")
	if o := k.c.Optimizer; !slices.Contains(mupOptimizers, o.Name) && slices.Contains(optimizerNames(), o.Name) {
		k.fault("model.mup", "optimizer.name = "+strings.Join(mupOptimizers, ", ")+"; or model.mup = false",
			"model.mup has no rule for optimizer.name = %s", o.Name)
	}
}
