package interop

import (
	"fmt"
	"strconv"

	"anneal/config"
	"anneal/hf"
	"anneal/model"
)

// ToHF says what a model is in the words of Hugging Face. What the formats cannot say is an error that names the key;
// at is where the key stands.
func ToHF(c model.Config, tokens hf.Tokens, at string) (hf.Config, error) {
	activation := "swiglu"
	if c.Family == "gpt2" {
		activation = "gelu"
	}
	for _, own := range []struct{ key, value, without string }{
		{"logit_softcap", strconv.FormatFloat(c.LogitSoftcap, 'g', -1, 64), "0"}, {"activation", c.Activation, activation},
		{"rope_theta_local", strconv.FormatFloat(c.RopeThetaLocal, 'g', -1, 64), "0"}, {"score_dim", strconv.Itoa(c.ScoreDim), "0"},
		{"value_embeddings", c.ValueEmbeddings, "none"}, {"x0_skip", strconv.FormatBool(c.X0Skip), "false"},
	} {
		if own.value != "" && own.value != own.without {
			return nil, inexpressible(own.key, own.value, own.without, at)
		}
	}
	if c.Family == "gpt2" {
		return toGPT2(c, tokens, at)
	}
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
		HeadDim: c.HeadDim, MaxPositions: c.Context, RopeTheta: theta, RopeScaling: scaling, NormEps: c.NormEps, Tied: c.TieEmbeddings,
		QKNorm: c.QKNorm, InitStd: c.InitStd, Window: window, WindowLayers: windowed, Tokens: tokens,
	}, nil
}

// toGPT2 is toHF for a GPT-2, whose format has learned positions and heads that fill the width.
func toGPT2(c model.Config, tokens hf.Tokens, at string) (hf.Config, error) {
	if window, _, err := windowsToHF(c, at); err != nil || window != 0 {
		return nil, inexpressible("attention", c.Attention.String(), "full", at)
	}
	for _, own := range []struct{ key, value, without string }{
		{"positions", c.Positions.String(), "learned"}, {"qk_norm", strconv.FormatBool(c.QKNorm), "false"},
		{"kv_heads", strconv.Itoa(c.KVHeads), strconv.Itoa(c.Heads)}, {"head_dim", strconv.Itoa(c.HeadDim), strconv.Itoa(c.Dim / c.Heads)},
	} {
		if own.value != own.without {
			return nil, inexpressible(own.key, own.value, own.without, at)
		}
	}
	return &hf.GPT2Config{
		VocabSize: c.Vocab, HiddenSize: c.Dim, FFNSize: c.FFN, Layers: c.Layers, Heads: c.Heads, MaxPositions: c.Context,
		NormEps: c.NormEps, Tied: c.TieEmbeddings, InitStd: c.InitStd, Tokens: tokens,
	}, nil
}

func inexpressible(key, value, without, at string) error {
	return config.Problem{
		Key: "model." + key, At: at, Try: fmt.Sprintf("a model that is trained with model.%s = %s", key, without),
		Message: fmt.Sprintf("model.%s = %s has no field in Hugging Face's formats: other tools would compute something else", key, value),
	}
}

// FromHF is the model that a config.json describes, or an error that names the field that this program has nothing
// for.
func FromHF(described hf.Config) (model.Config, error) {
	c := config.Default().Model
	if g, ok := described.(*hf.GPT2Config); ok {
		c.Family, c.Positions, c.Activation = "gpt2", model.Positions{"learned"}, "gelu"
		c.Layers, c.Dim, c.FFN, c.Context, c.Vocab = g.Layers, g.HiddenSize, g.FFNSize, g.MaxPositions, g.VocabSize
		c.Heads, c.KVHeads, c.HeadDim = g.Heads, g.Heads, g.HiddenSize/g.Heads
		c.TieEmbeddings, c.NormEps, c.InitStd = g.Tied, g.NormEps, g.InitStd
		return c, nil
	}
	l := described.(*hf.LlamaConfig)
	scaling, err := scalingFromHF(l.RopeScaling)
	if err != nil {
		return c, err
	}
	c.Layers, c.Dim, c.FFN, c.Context, c.Vocab = l.Layers, l.HiddenSize, l.FFNSize, l.MaxPositions, l.VocabSize
	c.Heads, c.KVHeads, c.HeadDim = l.Heads, l.KVHeads, l.HeadDim
	c.TieEmbeddings, c.QKNorm, c.NormEps, c.InitStd = l.Tied, l.QKNorm, l.NormEps, l.InitStd
	c.RopeTheta, c.RopeScaling, c.RopeOriginalContext = l.RopeTheta, scaling, l.RopeScaling.OriginalPositions
	c.Attention = windowsFromHF(l)
	return c, nil
}
