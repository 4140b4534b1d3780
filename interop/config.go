package interop

import (
	"fmt"
	"strconv"

	"anneal/config"
	"anneal/hf"
	"anneal/model"
)

// ToHF converts the shape of a model to a Hugging Face config. If the formats cannot represent it, the error names the
// key; at returns the place of a key.
func ToHF(c model.Config, tokens hf.Tokens, at string) (hf.Config, error) {
	if c.LoRARank > 0 { // the caller must merge them before exporting
		return nil, inexpressible("lora_rank", strconv.Itoa(c.LoRARank), "0", at)
	}
	switch c.Family {
	case "gpt2":
		return toGPT2(c, tokens, at)
	case "olmo2":
		return toOlmo2(c, tokens, at)
	case "phi3":
		return toPhi3(c, tokens, at)
	case "gemma2":
		return toGemma2(c, tokens, at)
	case "gemma3":
		return toGemma3(c, tokens, at)
	case "qwen3_moe":
		if !c.QKNorm {
			return toMixtral(c, tokens, at)
		}
		return toQwen3MoE(c, tokens, at)
	case "", "llama", "anneal":
	default:
		return nil, inexpressible("family", c.Family, "llama", at)
	}
	if err := only(c, at, own{"activation", "swiglu"}, own{"logit_softcap", "0"}, uncapped,
		own{"rope_theta_local", "0"},
		own{"score_dim", "0"}); err != nil {
		return nil, err
	}
	if c.QKNorm && c.QKVBias {
		return nil, inexpressible("qkv_bias", "true", "false", at)
	}
	l, err := toLlama(c, tokens, at)
	if err != nil { // a nil pointer in a Config would not be a nil Config
		return nil, err
	}
	return l, nil
}

// uncapped is the rule of formats without a soft-cap of scores.
var uncapped = own{"attention_softcap", "0"}

// own is a key that a format does not have, with the value that the format implies.
type own struct{ key, without string }

// only reports the first key of c that a format cannot represent: one of list, or of the family anneal.
func only(c model.Config, at string, list ...own) error {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	values := map[string]string{
		"activation": c.Activation, "logit_softcap": number(c.LogitSoftcap),
		"rope_theta_local": number(c.RopeThetaLocal),
		"score_dim":        strconv.Itoa(c.ScoreDim), "shared_expert_ffn": strconv.Itoa(c.SharedExpertFFN),
		"qk_norm": strconv.FormatBool(c.QKNorm), "positions": c.Positions.String(), "kv_heads": strconv.Itoa(c.KVHeads),
		"head_dim": strconv.Itoa(c.HeadDim), "value_embeddings": c.ValueEmbeddings,
		"x0_skip": strconv.FormatBool(c.X0Skip), "attention_sinks": strconv.FormatBool(c.AttentionSinks),
		"bigram": strconv.Itoa(c.Bigram), "smear": strconv.FormatBool(c.Smear),
		"qkv_bias":     strconv.FormatBool(c.QKVBias),
		"kv_lora_rank": strconv.Itoa(c.KVLoraRank), "rope_head_dim": strconv.Itoa(c.RopeHeadDim),
		"attention_softcap":             number(c.AttentionSoftcap),
		"short_conv":                    strconv.Itoa(c.ShortConv),
		"longformer_global_projections": strconv.FormatBool(c.LongformerGlobalProjections),
	}
	for _, o := range append(list, own{"value_embeddings", "none"}, own{"x0_skip", "false"},
		own{"bigram", "0"}, own{"smear", "false"},
		own{"attention_sinks", "false"}, own{"longformer_global_projections", "false"},
		own{"short_conv", "0"},
		own{"kv_lora_rank", "0"}, own{"rope_head_dim", "0"}) {
		if v := values[o.key]; v != "" && v != o.without {
			p := inexpressible(o.key, v, o.without, at)
			if c.Family == "anneal" { // other keys of the family would follow
				p.Try = "a model that is trained with model.family = llama"
			}
			return p
		}
	}
	return nil
}

// toLlama is ToHF for the fields that all descendants of Llama share.
func toLlama(c model.Config, tokens hf.Tokens, at string) (*hf.LlamaConfig, error) {
	theta, scaling, err := positionsToHF(c, at)
	if err != nil {
		return nil, err
	}
	window, windowed, err := windowsToHF(c, at)
	if err != nil {
		return nil, err
	}
	return &hf.LlamaConfig{
		VocabSize: c.Vocab, HiddenSize: c.Dim, FFNSize: c.FFN, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads,
		HeadDim: c.HeadDim, MaxPositions: c.Context, RopeTheta: theta, RopeScaling: scaling, NormEps: c.NormEps,
		Tied: c.TieEmbeddings, QKNorm: c.QKNorm, QKVBias: c.QKVBias, InitStd: c.InitStd, Window: window,
		WindowLayers: windowed, Tokens: tokens,
	}, nil
}

// toOlmo2 is ToHF for an OLMo 2, which has no windows.
func toOlmo2(c model.Config, tokens hf.Tokens, at string) (hf.Config, error) {
	err := only(c, at, own{"activation", "swiglu"}, own{"logit_softcap", "0"}, uncapped, own{"rope_theta_local", "0"},
		own{"score_dim", "0"}, own{"qk_norm", "true"}, own{"qkv_bias", "false"})
	if err != nil {
		return nil, err
	}
	l, err := toLlama(c, tokens, at)
	if err != nil {
		return nil, err
	}
	if l.Window != 0 {
		return nil, inexpressible("attention", c.Attention.String(), "full", at)
	}
	l.QKNorm = false
	return &hf.Olmo2Config{LlamaConfig: *l}, nil
}

// toPhi3 is ToHF for a Phi-3, whose fused weights have rotary pairs in halves.
func toPhi3(c model.Config, tokens hf.Tokens, at string) (hf.Config, error) {
	if c.Interleaved() {
		return nil, inexpressible("rope_layout", "interleaved", "half", at)
	}
	err := only(c, at, own{"activation", "swiglu"}, own{"logit_softcap", "0"}, uncapped, own{"rope_theta_local", "0"},
		own{"score_dim", "0"}, own{"qk_norm", "false"}, own{"qkv_bias", "false"})
	if err != nil {
		return nil, err
	}
	l, err := toLlama(c, tokens, at)
	if err != nil {
		return nil, err
	}
	if t := l.RopeScaling.Type; t != "" && t != "longrope" {
		return nil, inexpressible("rope_scaling", c.RopeScaling.String(), "longrope or none", at)
	}
	return &hf.Phi3Config{LlamaConfig: *l}, nil
}

// toGemma2 is ToHF for a Gemma 2, which never has QK-norm.
func toGemma2(c model.Config, tokens hf.Tokens, at string) (hf.Config, error) {
	err := only(c, at, own{"activation", "geglu"}, own{"qk_norm", "false"}, own{"qkv_bias", "false"},
		own{"rope_theta_local", "0"})
	if err != nil {
		return nil, err
	}
	l, err := toLlama(c, tokens, at)
	if err != nil {
		return nil, err
	}
	g := &hf.Gemma2Config{
		LlamaConfig: *l, ScoreDim: c.ScoreDim, ScoreSoftcap: c.AttentionSoftcap, LogitSoftcap: c.LogitSoftcap,
	}
	if g.ScoreDim == 0 {
		g.ScoreDim = c.HeadDim
	}
	return g, nil
}

// toGemma3 is ToHF for a Gemma 3, which always has QK-norm and an unscaled base of its own for windows.
func toGemma3(c model.Config, tokens hf.Tokens, at string) (hf.Config, error) {
	err := only(c, at, own{"activation", "geglu"}, own{"qk_norm", "true"}, own{"qkv_bias", "false"}, uncapped)
	if err != nil {
		return nil, err
	}
	l, err := toLlama(c, tokens, at)
	if err != nil {
		return nil, err
	}
	g := &hf.Gemma3Config{
		LlamaConfig: *l, LocalTheta: c.RopeThetaLocal, ScoreDim: c.ScoreDim, LogitSoftcap: c.LogitSoftcap,
	}
	if g.ScoreDim == 0 {
		g.ScoreDim = c.HeadDim
	}
	if g.LocalTheta == 0 {
		if g.LocalTheta = l.RopeTheta; l.Window != 0 && l.RopeScaling.Type != "" {
			return nil, inexpressible("rope_scaling", c.RopeScaling.String(), "none", at)
		}
	}
	return g, nil
}

// toQwen3MoE is ToHF for a Qwen3-MoE without a shared expert and without windows.
func toQwen3MoE(c model.Config, tokens hf.Tokens, at string) (hf.Config, error) {
	err := only(c, at, own{"activation", "swiglu"}, own{"logit_softcap", "0"}, uncapped, own{"rope_theta_local", "0"},
		own{"score_dim", "0"}, own{"shared_expert_ffn", "0"}, own{"qk_norm", "true"}, own{"qkv_bias", "false"})
	if err != nil {
		return nil, err
	}
	l, err := toLlama(c, tokens, at)
	if err != nil {
		return nil, err
	}
	if l.Window != 0 {
		return nil, inexpressible("attention", c.Attention.String(), "full", at)
	}
	return &hf.Qwen3MoEConfig{
		LlamaConfig: *l, Experts: c.Experts, ExpertsPerToken: c.ExpertsPerToken, ExpertFFN: c.ExpertFFN,
		Normalise: c.NormaliseExperts, AuxLoss: c.RouterAuxLoss,
	}, nil
}

// toMixtral is ToHF for experts without QK-norm, a shared expert and windows, whose weights sum to 1.
func toMixtral(c model.Config, tokens hf.Tokens, at string) (hf.Config, error) {
	err := only(c, at, own{"activation", "swiglu"}, own{"logit_softcap", "0"}, uncapped, own{"rope_theta_local", "0"},
		own{"score_dim", "0"}, own{"shared_expert_ffn", "0"}, own{"qkv_bias", "false"})
	if err != nil {
		return nil, err
	}
	if !c.NormaliseExperts {
		return nil, inexpressible("normalise_experts", "false", "true", at)
	}
	l, err := toLlama(c, tokens, at)
	if err != nil {
		return nil, err
	}
	if l.Window != 0 {
		return nil, inexpressible("attention", c.Attention.String(), "full", at)
	}
	l.FFNSize = c.ExpertFFN
	return &hf.MixtralConfig{
		LlamaConfig: *l, Experts: c.Experts, ExpertsPerToken: c.ExpertsPerToken, AuxLoss: c.RouterAuxLoss,
	}, nil
}

// toGPT2 is ToHF for a GPT-2, whose format has learned positions and heads that fill the width.
func toGPT2(c model.Config, tokens hf.Tokens, at string) (hf.Config, error) {
	if window, _, err := windowsToHF(c, at); err != nil || window != 0 {
		return nil, inexpressible("attention", c.Attention.String(), "full", at)
	}
	err := only(c, at, own{"activation", "gelu"}, own{"logit_softcap", "0"}, uncapped, own{"score_dim", "0"},
		own{"positions", "learned"}, own{"qkv_bias", "false"},
		own{"qk_norm", "false"}, own{"kv_heads", strconv.Itoa(c.Heads)}, own{"head_dim", strconv.Itoa(c.Dim / c.Heads)})
	if err != nil {
		return nil, err
	}
	return &hf.GPT2Config{
		VocabSize: c.Vocab, HiddenSize: c.Dim, FFNSize: c.FFN, Layers: c.Layers, Heads: c.Heads,
		MaxPositions: c.Context, NormEps: c.NormEps, Tied: c.TieEmbeddings, InitStd: c.InitStd, Tokens: tokens,
	}, nil
}

func inexpressible(key, value, without, at string) config.Problem {
	return config.Problem{
		Key: "model." + key, At: at, Try: fmt.Sprintf("a model that is trained with model.%s = %s", key, without),
		Message: fmt.Sprintf("model.%s = %s has no field in the formats of Hugging Face and llama.cpp: other "+
			"tools would compute something else", key, value),
	}
}

// FromHF returns the shape of the model that a config.json describes, or an error that names the field that this
// program does not support.
func FromHF(described hf.Config) (model.Config, error) {
	c := config.Default().Model
	if g, ok := described.(*hf.GPT2Config); ok {
		c.Family, c.Positions, c.Activation = "gpt2", model.Positions{"learned"}, "gelu"
		c.Layers, c.Dim, c.FFN, c.Context, c.Vocab = g.Layers, g.HiddenSize, g.FFNSize, g.MaxPositions, g.VocabSize
		c.Heads, c.KVHeads, c.HeadDim = g.Heads, g.Heads, g.HiddenSize/g.Heads
		c.TieEmbeddings, c.NormEps, c.InitStd = g.Tied, g.NormEps, g.InitStd
		return c, nil
	}
	var l *hf.LlamaConfig
	switch d := described.(type) {
	case *hf.Gemma2Config:
		l = &d.LlamaConfig
		c.Family, c.Activation, c.AttentionSoftcap, c.LogitSoftcap = "gemma2", "geglu", d.ScoreSoftcap, d.LogitSoftcap
		if d.ScoreDim != d.HeadDim {
			c.ScoreDim = d.ScoreDim
		}
	case *hf.Gemma3Config:
		l = &d.LlamaConfig
		c.Family, c.Activation, c.RopeThetaLocal, c.LogitSoftcap = "gemma3", "geglu", d.LocalTheta, d.LogitSoftcap
		if d.ScoreDim != d.HeadDim {
			c.ScoreDim = d.ScoreDim
		}
	case *hf.Qwen3MoEConfig:
		l = &d.LlamaConfig
		c.Family, c.Experts, c.ExpertsPerToken, c.ExpertFFN = "qwen3_moe", d.Experts, d.ExpertsPerToken, d.ExpertFFN
		c.NormaliseExperts, c.RouterAuxLoss = d.Normalise, d.AuxLoss
	case *hf.MixtralConfig: // a softmax over the chosen experts equals a normalised softmax over all
		l = &d.LlamaConfig
		c.Family, c.Experts, c.ExpertsPerToken, c.ExpertFFN = "qwen3_moe", d.Experts, d.ExpertsPerToken, d.FFNSize
		c.NormaliseExperts, c.RouterAuxLoss = true, d.AuxLoss
	case *hf.Olmo2Config:
		l = &d.LlamaConfig
		c.Family = "olmo2"
	case *hf.Phi3Config:
		l = &d.LlamaConfig
		c.Family = "phi3"
	case *hf.LlamaConfig:
		l = d
	}
	scaling, err := scalingFromHF(l.RopeScaling)
	if err != nil {
		return c, err
	}
	c.Layers, c.Dim, c.FFN, c.Context, c.Vocab = l.Layers, l.HiddenSize, l.FFNSize, l.MaxPositions, l.VocabSize
	c.Heads, c.KVHeads, c.HeadDim = l.Heads, l.KVHeads, l.HeadDim
	c.TieEmbeddings, c.NormEps, c.InitStd = l.Tied, l.NormEps, l.InitStd
	c.QKNorm, c.QKVBias = l.QKNorm || c.Family == "olmo2", l.QKVBias
	c.RopeTheta, c.RopeScaling, c.RopeOriginalContext = l.RopeTheta, scaling, l.RopeScaling.OriginalPositions
	c.Attention = windowsFromHF(l)
	return c, nil
}
