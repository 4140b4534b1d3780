package config

import (
	"slices"

	"anneal/attention"
	"anneal/model"
)

// globalProjections refuses combinations that separate projections for global tokens do not support.
func (k *checker) globalProjections() {
	const key = "model.longformer_global_projections"
	m := &k.c.Model
	if !m.LongformerGlobalProjections || !hasLongformer(m) {
		return
	}
	for _, other := range []struct {
		wrong     bool
		what, try string
	}{
		{m.KVLoraRank > 0, "model.kv_lora_rank", "model.kv_lora_rank = 0"},
		{m.AttentionSinks, "model.attention_sinks", "model.attention_sinks = false"},
		{hasLinear(m), "layers of linear attention", "layers of longformer, window or full"},
		{m.ValueEmbeddings != "none", "model.value_embeddings", "model.value_embeddings = none"},
		{m.LoRARank > 0, "model.lora_rank", "model.lora_rank = 0"},
		{k.c.Train.LengthWarmup.Given(), "train.length_warmup: shorter rows would have more global tokens",
			"leaving out train.length_warmup"},
	} {
		if other.wrong && !k.reported(key) {
			k.fault(key, other.try+", or "+key+" = false", "%s = true does not work with %s", key, other.what)
		}
	}
}

// hasLongformer reports whether a layer has global tokens.
func hasLongformer(m *model.Config) bool {
	return slices.ContainsFunc(m.Attention, func(p attention.Pattern) bool {
		_, is := p.(attention.Longformer)
		return is
	})
}
