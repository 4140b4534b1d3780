package config

// resolveMuP derives the base model of muP from its width. It goes by values alone, not by where they came from, so that a
// resolved config says the same again.
func (c *Config) resolveMuP() {
	m := &c.Model
	c.derive("model.mup_base_head_dim", m.HeadDim)
	switch {
	case m.FFN == ffn(m.Dim):
		c.derive("model.mup_base_ffn", ffn(m.MuPBaseDim))
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
	k.between("model.mup_base_dim", m.MuPBaseDim, 1, 1<<18)
	k.between("model.mup_base_head_dim", m.MuPBaseHeadDim, 1, 1<<14)
	k.between("model.mup_base_ffn", m.MuPBaseFFN, 1, 1<<20)
	k.number("model.mup_input_scale", m.MuPInputScale, 0, 1e6, "()")
	k.number("model.mup_output_scale", m.MuPOutputScale, 0, 1e6, "()")
}
