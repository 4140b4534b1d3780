package config

// init checks how weights start.
func (k *checker) init() {
	m := &k.c.Model
	if standard := Default().Model.InitStd; m.Init == "small" && m.InitStd != standard {
		k.fault("model.init_std", "model.init = gpt2, or leave model.init_std out", "model.init_std = %g has no effect with model.init = small, which goes by the width", m.InitStd)
	}
	if (m.ZeroInit == "head" || m.ZeroInit == "both") && m.TieEmbeddings {
		k.fault("model.zero_init", "model.tie_embeddings = false, or model.zero_init = residual", "model.zero_init = %s would start the embedding at zero, too: model.tie_embeddings makes them one, and nothing could be learned", m.ZeroInit)
	}
}
