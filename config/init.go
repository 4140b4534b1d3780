package config

// init checks the keys of initial weights.
func (k *checker) init() {
	m := &k.c.Model
	if (m.ZeroInit == "head" || m.ZeroInit == "both") && m.TieEmbeddings {
		k.fault("model.zero_init", "model.tie_embeddings = false, or model.zero_init = residual",
			"model.zero_init = %s sets a tied embedding to zero, and nothing could be learned", m.ZeroInit)
	}
}
