package train

import (
	"fmt"
	"strconv"

	"anneal/hf"
	"anneal/model"
	"anneal/tokenizer"
	"anneal/train/config"
)

// toHF says what a model is in the words of Hugging Face. What the formats cannot say is an error that names the key; at is
// where the key stands.
func toHF(c model.Config, tokens hf.Tokens, at string) (hf.Config, error) {
	for _, own := range []struct{ key, value, without string }{
		{"logit_softcap", strconv.FormatFloat(c.LogitSoftcap, 'g', -1, 64), "0"}, {"activation", c.Activation, "swiglu"},
		{"value_embeddings", c.ValueEmbeddings, "none"}, {"x0_skip", strconv.FormatBool(c.X0Skip), "false"},
	} {
		if own.value != "" && own.value != own.without {
			return nil, inexpressible(own.key, own.value, own.without, at)
		}
	}
	theta, scaling, err := positionsToHF(c, at)
	if err != nil {
		return nil, err
	}
	window, windowed, err := windowsToHF(c, at)
	if err != nil {
		return nil, err
	}
	out := &hf.LlamaConfig{
		VocabSize: c.Vocab, HiddenSize: c.Dim, FFNSize: c.FFN, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads,
		HeadDim: c.HeadDim, MaxPositions: c.Context, RopeTheta: theta, RopeScaling: scaling, NormEps: c.NormEps, Tied: c.TieEmbeddings,
		QKNorm: c.QKNorm, InitStd: c.InitStd, Window: window, WindowLayers: windowed, Tokens: tokens,
	}
	return out, nil
}

func inexpressible(key, value, without, at string) error {
	return config.Problem{
		Key: "model." + key, At: at, Try: fmt.Sprintf("a model that is trained with model.%s = %s", key, without),
		Message: fmt.Sprintf("model.%s = %s has no field in Hugging Face's formats, so that other tools would compute something else", key, value),
	}
}

// hfTokens returns the special tokens: documents of the training data begin and end with the same one.
func hfTokens(tok *tokenizer.Tokenizer) hf.Tokens {
	t := hf.Tokens{BOS: -1, Pad: -1}
	if eot, ok := tok.EOT(); ok {
		t.BOS, t.EOS = int(eot), []int{int(eot)}
	}
	return t
}

// fromHF is the model that a config.json describes, or an error that names the field that this program has nothing for.
func fromHF(c hf.Config) (model.Config, error) {
	l, ok := c.(*hf.LlamaConfig)
	if !ok {
		return model.Config{}, fmt.Errorf("config.json: architectures = [%q] is not supported", c.Class())
	}
	return model.Config{
		Family: "llama", Layers: l.Layers, Dim: l.HiddenSize, Heads: l.Heads, KVHeads: l.KVHeads, HeadDim: l.HeadDim, FFN: l.FFNSize,
		Context: l.MaxPositions, Vocab: l.VocabSize, TieEmbeddings: l.Tied, QKNorm: l.QKNorm,
		Attention: windowsFromHF(l), Positions: "rope", RopeTheta: l.RopeTheta, RopeScaling: scalingFromHF(l.RopeScaling), NormEps: l.NormEps, InitStd: l.InitStd,
		Activation: "swiglu", ValueEmbeddings: "none",
	}, nil
}
